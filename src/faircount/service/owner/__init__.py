"""The owner's side, on the owner's machine: advice, a folder per survey, invitations, and what both servers are told.

advice        which mechanism, for how many people, with room for those who do not answer
folder        the files of one survey: parameters, access to the servers, invitations, the result
invitations   one token per person, as a table and as printable codes
remote        the calls to both servers: access values to S1, sealing keys to S2, tokens to neither
"""
