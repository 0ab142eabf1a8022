"""Messages as bytes: their encoding, digests, signatures and encryption, and the stored states."""
