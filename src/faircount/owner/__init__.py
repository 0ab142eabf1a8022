"""The owner's side of a survey, on the owner's machine.

advice             which mechanism to run, for how many people, with how many dropouts
folder             the files of one survey: parameters, access to the servers, invitations, result
invitations        one secret token per participant, as a table and as printable pages
invitation_texts   the sentences of a printed invitation, in every language
people             the people of a survey, from a spreadsheet or a list
mail               invitations and reminders by mail
mail_server        the owner's mail server and the account there
mail_texts         what a mail says, in every language or in the owner's words
mail_journal       which mails were sent
remote             the owner's calls to both servers
survey             the commands of an owner: create, invite, read the result
exports            a result as files to keep
result_page        a result as a page that stands alone
label              what a survey promises, for participants and programs
label_page         the label as a page that participants read
label_texts        the sentences of the label, in every language
repeat             the next survey among the same people
reissue            a new invitation for somebody who has lost theirs
"""
