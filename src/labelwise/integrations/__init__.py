"""Other systems: their models read, and labelwise as a part of them."""
