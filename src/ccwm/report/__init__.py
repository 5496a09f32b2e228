"""The report: the paper's claims, one file for each section, and the pages that show them."""
