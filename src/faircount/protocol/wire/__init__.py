"""Messages as bytes: encoding, digests, signatures, sealing."""
