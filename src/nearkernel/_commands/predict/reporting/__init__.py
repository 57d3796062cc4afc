"""From predictions to files, pictures and a report."""
