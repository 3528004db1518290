"""Full kernel machines: exact, online, and learning row by row."""
