module github.com/postern-mail/postern/clients/go

go 1.21
