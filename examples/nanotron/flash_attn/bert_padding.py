"""nanotron imports it and calls it in generation only."""
