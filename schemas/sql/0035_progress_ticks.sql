-- Ticks that the running attempt of a job has driven, as its worker said last: for people.
ALTER TABLE jobs ADD COLUMN progress_ticks INTEGER NOT NULL DEFAULT 0;
