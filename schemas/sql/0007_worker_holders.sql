-- Name of the token that a worker's first claim came with; '' for one that came without or with an
-- administrator's; NULL: claimed before this was kept, so the next claim says.
ALTER TABLE workers ADD COLUMN holder TEXT;
