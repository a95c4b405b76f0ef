"""Names that users and logs see: tables and columns, rules, reasons for refusals. Imports nothing."""
