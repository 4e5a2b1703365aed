-- In how many openings of the store, one after the other, the worker was not heard of although it held
-- jobs. Leases are kept in memory and begin anew at each opening, so a store that is opened again and
-- again before they end needs this to tell the dead from the living.
ALTER TABLE workers ADD COLUMN openings INTEGER NOT NULL DEFAULT 0;
