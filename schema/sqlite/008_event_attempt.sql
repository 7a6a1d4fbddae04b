-- The attempt that an event is about; NULL: the sweep as a whole. Older versions said it in the text alone.
ALTER TABLE event ADD COLUMN attempt INTEGER;
UPDATE event SET attempt = CAST(substr(text, 9) AS INTEGER)
WHERE text GLOB 'attempt [0-9]*' AND EXISTS (
  SELECT 1 FROM attempt a JOIN plan_entry p ON p.key = a.entry
  WHERE a.id = CAST(substr(event.text, 9) AS INTEGER) AND p.sweep = event.sweep);
