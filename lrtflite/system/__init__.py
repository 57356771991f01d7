"""The machine and its packages: extras, versions, RAM, silence on stderr."""
