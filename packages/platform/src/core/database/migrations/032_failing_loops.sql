-- The loops of a process that have failed for minutes, with the reason: every process reports those
-- of all ({loop, since, reason}).
alter table processes add column failing jsonb not null default '[]';
