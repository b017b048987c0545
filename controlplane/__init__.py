"""What operators say, and what became of it. Imports nothing here: `settings_ads` must not load Celery (D5a)."""
