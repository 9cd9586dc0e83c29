//! Rows of the table in `docs/reliability.md`.
