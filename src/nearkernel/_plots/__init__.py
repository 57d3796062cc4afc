"""Pictures of results, as one would draw them by hand: one file a picture, drawn on the caller's axes."""
