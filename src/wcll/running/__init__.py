"""How suites are run: samples are drawn, jobs planned, trained and written to the store."""
