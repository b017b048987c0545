"""The soak: 200 clients, changes all the time, a fault every 20 s for 45 minutes, and a report (reliability (d))."""
