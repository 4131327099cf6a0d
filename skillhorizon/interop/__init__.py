"""How others reach these tasks: servers, formats and harnesses that are not this project's."""
