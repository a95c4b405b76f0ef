"""The structs of TCLIService that the proxy reads or writes."""
