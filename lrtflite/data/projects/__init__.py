"""Pictures in one archive: a Teachable Machine project, or a zip of class folders."""
