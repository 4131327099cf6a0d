"""Tables and figures: from the paper's numbers or from this project's files, by the same code. Opens no world."""
