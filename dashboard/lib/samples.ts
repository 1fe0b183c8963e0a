// The first mail as a program of each language sends it, with Postern's own libraries. Pure.

export type Sample = { language: string; code: string };
type Given = { origin: string; key: string; from: string };

/** `key` stands in the code as it is: a placeholder, or a test key that was just made. */
export function samplesOf({ origin, key, from }: Given): Sample[] {
  const mail = { from, to: ["you@example.com"], subject: "Hello", html_body: "<p>Hello</p>" };
  const text = (value: string) => JSON.stringify(value);
  const fields = Object.entries(mail).map(([name, value]): [string, string] => [name, JSON.stringify(value)]);
  const each = (say: (name: string, value: string) => string) => fields.map(([name, value]) => say(name, value));
  return [
    {
      language: "curl",
      code: [
        `curl ${origin}/v1/send \\`,
        `  -H "Authorization: Bearer ${key}" \\`,
        `  -H "Content-Type: application/json" \\`,
        `  -d '${JSON.stringify(mail)}'`,
      ].join("\n"),
    },
    {
      language: "Node",
      code: [
        `import { Postern } from "postern-mail";`,
        "",
        `const postern = new Postern({ apiKey: ${text(key)}, baseUrl: ${text(origin)} });`,
        "const sent = await postern.emails.send({",
        ...each((name, value) => `  ${name}: ${value},`),
        "});",
        "console.log(sent.id);",
      ].join("\n"),
    },
    {
      language: "Python",
      code: [
        "from postern_mail import Postern",
        "",
        `postern = Postern(${text(key)}, base_url=${text(origin)})`,
        "sent = postern.emails.send({",
        ...each((name, value) => `    "${name}": ${value},`),
        "})",
        `print(sent["id"])`,
      ].join("\n"),
    },
    {
      language: "Ruby",
      code: [
        `require "postern"`,
        "",
        `postern = Postern::Client.new(${text(key)}, base_url: ${text(origin)})`,
        "sent = postern.emails.send(",
        each((name, value) => `  ${name}: ${value}`).join(",\n"),
        ")",
        "puts sent.id",
      ].join("\n"),
    },
    {
      language: "PHP",
      code: [
        "<?php",
        "require 'vendor/autoload.php';",
        "",
        `$postern = new Postern\\Client(${text(key)}, ['base_url' => ${text(origin)}]);`,
        "$sent = $postern->emails->send([",
        ...each((name, value) => `    '${name}' => ${value},`),
        "]);",
        "echo $sent->id;",
      ].join("\n"),
    },
    { language: "Go", code: goCode({ origin, key, from }) },
  ];
}

function goCode({ origin, key, from }: Given): string {
  const text = (value: string) => JSON.stringify(value);
  return [
    "package main",
    "",
    "import (",
    `\t"context"`,
    `\t"fmt"`,
    `\t"log"`,
    "",
    `\tpostern "github.com/postern-mail/postern/clients/go"`,
    ")",
    "",
    "func main() {",
    `\tclient, err := postern.New(postern.Options{APIKey: ${text(key)}, BaseURL: ${text(origin)}})`,
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tsent, err := client.Emails.Send(context.Background(), postern.SendRequest{",
    `\t\tFrom:     ${text(from)},`,
    `\t\tTo:       []string{"you@example.com"},`,
    `\t\tSubject:  postern.Ptr("Hello"),`,
    `\t\tHTMLBody: postern.Ptr("<p>Hello</p>"),`,
    "\t})",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tfmt.Println(sent.ID)",
    "}",
  ].join("\n");
}
