"""What answers over HTTPS: admission reviews, and the calls of schedulers. Thin: decode and pass on."""
