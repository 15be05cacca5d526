"""What register dumps hold, beside the matrices that they should hold."""
