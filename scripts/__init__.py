"""Programs for those who work on Parley; nothing here is part of the image."""
