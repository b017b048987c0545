"""One module per noun. A view parses, calls one service or selector, and renders."""
