"""Templates: small sets of schedules of products and convolutions, sized for the hardware."""
