-- Whether somebody showed that mail to their address reaches them: by a link that was mailed, or by their provider. Who has not may
-- be somebody else who was shown the link; what they set up goes with the first password that is set by mail. Of those who are
-- there, and whom processes of the version before let in meanwhile, it is not known.
alter table person add column is_proven boolean not null default true;
alter table person_link add column is_mailed boolean not null default false;
