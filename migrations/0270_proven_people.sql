-- Whether somebody showed that mail to their address reaches them: by a link that was mailed, or by their provider. Without that
-- it may be another person, who was shown the link; their passkeys end with the first password that is set by mail. Of those who
-- are there, and of those whom processes of the version before let in meanwhile, it is not known.
alter table person add column is_proven boolean not null default true;
alter table person_link add column is_mailed boolean not null default false;
