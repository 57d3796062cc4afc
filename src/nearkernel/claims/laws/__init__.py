"""Laws that hold at every width: deep linear networks and the spectra of noise."""
