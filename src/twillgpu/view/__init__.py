"""Reports and pictures of any record."""
