// The packages for frameworks (clients/*): an application that sends with Nodemailer, Django, Rails or Symfony Mailer sends
// the same mail through a real Postern, with the real framework. What is not on this machine is skipped with its remedy.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import PostalMime from "postal-mime";
import { compileNodeLibrary } from "../support/node-library.ts";
import { type Scene, setScene } from "../support/scene.ts";
import type { Received } from "../support/smtp-sink.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/postern-clients");
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const DJANGO = "5.2.8";

type Shown = { message_id: string; envelope_message_id?: string; refused: [string, string]; blind: string };
type Framework = { name: string; script: string; command: string; missing: string | null };

let scene: Scene;

before(async () => {
  scene = await setScene();
  receiveAt(scene.dns, "recipient.example");
  await scene.start();
  await addVerifiedDomain(scene, scene.dns, "shop.example");
});

after(() => scene?.close());

for (const framework of [nodemailer(), django(), rails(), symfony()]) {
  describe(framework.name, { skip: framework.missing ?? false }, () => {
    it("sends by one setting what it sent by SMTP", async () => {
      const shown = await play(framework);
      await checkReceipt(await mailOf(shown.message_id));
      if (shown.envelope_message_id) {
        const mail = await mailOf(shown.envelope_message_id);
        assert.deepEqual(mail.to, ["dora@recipient.example"], "only the envelope's recipient gets it");
      }
      assert.match(shown.refused[0], /PermissionError|ValidationError/);
      assert.match(shown.refused[1], /^domain_/);
      assert.match(shown.blind, /needs a recipient in 'to'/);
    });
  });
}

async function play({ command, script }: Framework): Promise<Shown> {
  const { stdout } = await promisify(execFile)(command, [join(ROOT, script)], {
    env: { ...process.env, PNG, POSTERN_API_KEY: scene.live_key, POSTERN_BASE_URL: scene.base_url },
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) as string);
}

async function mailOf(messageId: string): Promise<Received> {
  const isIt = ({ message_id }: Received) => `<${message_id}>`.replace("<<", "<").replace(">>", ">") === messageId;
  return until(
    () => `no mail ${messageId} among ${scene.sink.messages.map(({ message_id }) => message_id).join(", ")}`,
    () => scene.sink.messages.find(isIt),
  );
}

async function checkReceipt({ bytes, message_id }: Received): Promise<void> {
  const copies = () => scene.sink.messages.filter((one) => one.message_id === message_id).flatMap(({ to }) => to);
  await until("three recipients", () => copies().length === 3);
  assert.deepEqual(
    copies().sort(),
    ["anna", "bea", "carl"].map((name) => `${name}@recipient.example`),
  );
  const mail = await PostalMime.parse(bytes);
  assert.deepEqual(mail.from, { name: "Käse & Co", address: "orders@shop.example" });
  assert.deepEqual(mail.to, [{ name: "Anna, Größe", address: "anna@recipient.example" }]);
  assert.deepEqual(mail.cc, [{ name: "", address: "carl@recipient.example" }]);
  assert.equal(mail.bcc, undefined);
  assert.deepEqual(mail.replyTo, [{ name: "", address: "help@shop.example" }]);
  assert.equal(mail.subject, "Grüße aus Łódź");
  assert.equal(mail.text?.trim(), "Schöne Grüße");
  assert.equal(mail.headers.find(({ key }) => key === "x-order")?.value, "17");
  assert.equal(bytes.toString("latin1").match(/^(message-id|date|mime-version|subject):/gim)?.length, 4);
  const [text, logo] = ["Größe.txt", "logo.png"].map((name) =>
    mail.attachments.find(({ filename }) => filename === name),
  );
  assert.equal(Buffer.from(text?.content as ArrayBuffer).toString(), "Maß 17\n");
  assert.deepEqual(Buffer.from(logo?.content as ArrayBuffer), Buffer.from(PNG, "base64"));
  assert.equal(logo?.mimeType, "image/png");
  const cid = /cid:([^"]+)/.exec(mail.html ?? "")?.[1];
  assert.equal(logo?.contentId, `<${cid}>`, mail.html);
  const { body } = await scene.ask("GET", "/v1/emails?limit=100");
  const listed = (body.emails as unknown as Record<string, unknown>[]).find((one) => one.message_id === message_id);
  assert.deepEqual(listed?.tags, ["receipt"]);
  assert.deepEqual(listed?.metadata, { order: "17" });
}

// Frameworks ---------------------------------------------------------------------------------------------------------

function answers(command: string, ...given: string[]): boolean {
  return spawnSync(command, given).status === 0;
}

function nodemailer(): Framework {
  const missing = compileNodeLibrary();
  return { name: "Nodemailer", script: "clients/node/test/nodemailer.mjs", command: process.execPath, missing };
}

/** In a virtual environment of its own, which is made once. */
function django(): Framework {
  const python = join(CACHE, "django/bin/python");
  if (!existsSync(python) || !answers(python, "-c", "import django, httpx")) {
    mkdirSync(CACHE, { recursive: true });
    answers("python3", "-m", "venv", join(CACHE, "django"));
    answers(python, "-m", "pip", "install", "-q", `django==${DJANGO}`, "httpx>=0.27,<1");
  }
  const isThere = answers(python, "-c", "import django, httpx");
  const missing = isThere ? null : "no Django: it takes python3-venv and a package index";
  return { name: "Django", script: "clients/python/test/django_backend.py", command: python, missing };
}

function rails(): Framework {
  const isThere = answers("ruby", "-e", "require 'action_mailer'; require 'rails'");
  const missing = isThere ? null : "no Rails: apt-get install ruby-actionmailer ruby-railties";
  return { name: "Rails", script: "clients/ruby/test/rails_delivery.rb", command: "ruby", missing };
}

function symfony(): Framework {
  const isThere = existsSync("/usr/share/php/Symfony/Component/Mailer/autoload.php") && answers("php", "-v");
  const missing = isThere ? null : "no Symfony Mailer: apt-get install php-symfony-mailer php-curl";
  return { name: "Symfony Mailer", script: "clients/php/test/symfony_mailer.php", command: "php", missing };
}
