-- Millions of operations a second that a core of the machine that drove reaches in the model's precision. 0: not measured, or driven
-- before it was kept. Of partial outcomes it is in their text.
ALTER TABLE outcomes ADD COLUMN peak_mflops INTEGER NOT NULL DEFAULT 0;

-- SHA-256 over a suite's name, tenant and when it was submitted (store/api/digest.h). NULL: submitted before there was one.
ALTER TABLE suites ADD COLUMN digest BLOB;
