"""Templates: few schedules of products and convolutions that the hardware's numbers choose."""
