-- Whom an OpenID Connect provider knows a person as: "issuer subject" (OpenID Connect Core §2: only both together name somebody).
alter table person add column oidc_subject text;
create unique index person_oidc on person (oidc_subject) where oidc_subject is not null;
