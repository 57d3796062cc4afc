"""The lab's web server and the processes that compute for it."""
