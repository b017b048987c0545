"""What a process lets in and what each caller may cost: places, pace, bytes, memory, and time of the event loop."""
