"""What every module may use: checks of arguments, records, status, public names."""
