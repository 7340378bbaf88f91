"""Workers outside, and the server whose API they call."""
