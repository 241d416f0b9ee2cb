"""Makes the datasets out of catalogs of models; run from a checkout, not installed."""
