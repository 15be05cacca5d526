"""Mistakes as five engineers make them, written down before ``diff`` knew them; a part was written last."""
