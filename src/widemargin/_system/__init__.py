"""What has to do with the system: warnings, files, threads."""
