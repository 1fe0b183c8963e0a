// Classification: every entry of the data files by its own example, the IANA registry, KumoMTA's rules, real bounces.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { classifyReply, type Refusal, type ReplyStage } from "./classify.ts";
import { parseReply, type Reply } from "./reply.ts";

const here = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");
const SHARED = join(import.meta.dirname, "../../../../shared/data");
const registry = join(SHARED, "smtp-reply-classification/iana-enhanced-status-codes.csv");
const kumomta = join(SHARED, "smtp-reply-classification/kumomta-iana.toml");
const sisimai = join(SHARED, "bounce-sisimai/expected.json");
const missing = (path: string) => (existsSync(path) ? false : `${path} is not here`);
const differences = JSON.parse(here("classify.differences.json"));

type Entry = { id: string; class: string; site?: string; site_only?: boolean; reason: string; example: string };
const entries: Entry[] = [
  "provider-patterns.json",
  "reply-texts.json",
  "not-the-recipient.json",
  "not-our-address.json",
].flatMap((name) => JSON.parse(here(name)));
const CLASSES = new Set(
  (
    "invalid_recipient bad_domain inactive_mailbox routing mailbox_full too_large busy connection dns greylisted " +
    "rate_limited blocked content auth expired"
  ).split(" "),
);
const STAGES: ReplyStage[] = ["connect", "banner", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "final"];
const SUPPRESSING = ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"];

function read(raw: string): Reply {
  const reply = parseReply(raw);
  assert.ok(reply, raw);
  return reply;
}

function classify(raw: string, stage: ReplyStage = "rcpt", site?: string) {
  return classifyReply({ stage, site, ...read(raw) });
}

test("every entry has its own id, a class of the table, a reason, and decides its own example", () => {
  assert.equal(new Set(entries.map((entry) => entry.id)).size, entries.length);
  assert.ok(entries.length > 150, String(entries.length));
  for (const entry of entries) {
    assert.ok(CLASSES.has(entry.class), entry.id);
    assert.ok(entry.reason.length > 3, entry.id);
    const result = classify(entry.example, "rcpt", entry.site_only ? entry.site : undefined);
    assert.deepEqual([result.rule, result.class], [entry.id, entry.class], entry.example);
  }
});

// reply | class | bounce_type | retry | suppress, all at RCPT.
const table = `
550 5.1.1 <x@y.example>: Recipient address rejected: User unknown in virtual mailbox table | invalid_recipient hard - suppress
550-5.1.1 The email account that you tried to reach does not exist. | invalid_recipient hard - suppress
550 No such user here | invalid_recipient hard - suppress
551 User not local: unknown user | invalid_recipient hard - suppress
550 Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#550 | invalid_recipient hard - suppress
553 sorry, no mailbox here by that name (#5.1.1 - chkuser) | invalid_recipient hard - suppress
550 Benutzer existiert nicht | invalid_recipient hard - suppress
550 Destinataire inconnu à cette adresse | invalid_recipient hard - suppress
550 5.1.1 Usuário inexistente | invalid_recipient hard - suppress
550 Nie ma takiego użytkownika | invalid_recipient hard - suppress
550 Пользователь не найден | invalid_recipient hard - suppress
550 收件人不存在 | invalid_recipient hard - suppress
550 宛先が見つかりません | invalid_recipient hard - suppress
550 사용자를 찾을 수 없습니다 | invalid_recipient hard - suppress
550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found | invalid_recipient hard - suppress
556 5.1.10 Recipient address has null MX | bad_domain hard - suppress
550 5.2.1 mailbox disabled | inactive_mailbox hard - suppress
550 5.1.2 Host unknown | invalid_recipient hard - suppress
550 5.1.6 Mailbox moved | invalid_recipient hard - suppress
554 User unknown | invalid_recipient hard - -
550 5.7.1 No such user! | invalid_recipient hard - -
550 5.4.1 Recipient address rejected: Access denied | invalid_recipient hard - -
550 5.0.0 User unknown | invalid_recipient hard - -
550 mailbox unavailable | invalid_recipient hard - -
550 Account has been disabled | inactive_mailbox hard - -
556 Domain does not accept mail | bad_domain hard - -
450 4.1.1 <x@y.example>: Recipient address rejected: unverified address | invalid_recipient soft retry -
450 4.2.1 mailbox disabled for now | inactive_mailbox soft retry -
550 4.1.1 User unknown | invalid_recipient hard - -
554 5.7.1 <x@y.example>: Relay access denied | routing hard - -
550 5.4.6 Routing loop detected | routing hard - -
552 5.2.2 Mailbox full | mailbox_full soft - -
550 5.1.1 user over quota (#5.1.1) | mailbox_full soft - -
452 4.2.2 over quota | mailbox_full soft retry -
552 | mailbox_full soft - -
452 | mailbox_full soft retry -
552 5.3.4 Message too big | too_large soft - -
552 Message exceeds maximum size | too_large soft - -
421 4.3.2 shutting down | busy soft retry -
451 4.3.0 Temporary server error. Please try again later | busy soft retry -
421 4.4.2 timeout exceeded | connection soft retry -
451 4.4.3 name server failure | dns soft retry -
450 4.7.1 <x@y.example>: Recipient address rejected: Greylisted | greylisted soft retry -
451 4.7.1 Please try again in 300 seconds | greylisted soft retry -
421 4.7.0 too many errors | rate_limited soft retry -
452 4.5.3 Too many recipients | rate_limited soft retry -
550 5.7.1 Service unavailable; client [192.0.2.1] blocked using zen.spamhaus.org | blocked soft retry -
550 5.1.1 Access denied, 192.0.2.1 is listed at spamcop | blocked soft retry -
550 5.7.606 Access denied, banned sending IP [192.0.2.1] | blocked soft retry -
550 5.7.1 Message rejected as spam | content soft - -
550 5.7.26 This mail is unauthenticated | auth soft - -
550 5.7.1 rejected by DMARC policy | auth soft - -
550 5.1.1 <me@example.com>: Sender address rejected: User unknown | auth soft - -
550 5.1.8 bad sender domain | auth soft - -
554 5.7.1 URL in message body listed at dbl.spamhaus.org | content soft - -
554 Transaction failed | content soft - -
550 5.1.1 User unknown; see our anti-spam policy at http://example.com/spam | invalid_recipient hard - suppress
550 5.1.1 <spam@blocklist.example>: no such user | invalid_recipient hard - suppress
550 <virus-quota-spam@example.com> unknown user | invalid_recipient hard - suppress
554 5.4.7 Delivery time expired | expired soft - -
599 something nobody has seen | content soft - -
521 5.2.1 :  (CON:B1) https://postmaster.example/error-codes | blocked soft retry -
521 5.2.1 we will not accept delivery of this message | content soft - -
521 5.2.1 This mailbox is disabled | inactive_mailbox hard - suppress
499 something nobody has seen | busy soft retry -
`;
test("replies of many servers get the class, type, retry and suppression of the design's table", () => {
  for (const row of table.trim().split("\n")) {
    const [raw = "", want = ""] = row.split(" | ");
    const result = classify(raw);
    const got = `${result.class} ${result.bounce_type} ${result.retry ? "retry" : "-"} ${result.suppress ? "suppress" : "-"}`;
    assert.equal(got, want, `${raw} (${result.rule})`);
  }
});

test("what the table says of paths: slow for rates, another source for blocks, nothing for the rest", () => {
  assert.equal(classify("421 4.7.0 Too many connections").path_action, "slow");
  assert.equal(classify("554 5.7.1 blocked using spamhaus").path_action, "other_source");
  assert.equal(classify("421 4.7.1 blocked using spamhaus").path_action, "suspend");
  assert.equal(classify("450 4.7.1 blocked using spamhaus", "banner").path_action, "suspend");
  assert.equal(
    classify("450 4.7.1 blocked using spamhaus").path_action,
    "other_source",
    "perhaps one recipient's own list",
  );
  assert.equal(classify("450 4.7.1 <x@y.example>: Client host rejected: too many connections").path_action, "slow");
  assert.equal(classify("550 5.1.1 user unknown").path_action, null);
  assert.equal(classify("450 4.7.1 Greylisted").path_action, null);
});

test("greylisting waits five minutes, or as long as the server says, up to four hours", () => {
  assert.equal(classify("450 4.7.1 Greylisted").retry_after_min, 5);
  assert.equal(classify("451 Greylisted, please try again in 60 seconds").retry_after_min, 5);
  assert.equal(classify("451 Greylisted, please try again in 900 seconds").retry_after_min, 15);
  assert.equal(classify("451 Greylisted for 30 minutes").retry_after_min, 30);
  assert.equal(classify("451 Greylisted, try again in 99999 minutes").retry_after_min, 240);
  assert.equal(classify("421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred").retry_after_min, 60);
  assert.equal("retry_after_min" in classify("550 5.1.1 user unknown"), false);
});

test("the stage decides: the same words are about the recipient at RCPT only", () => {
  const said = "550 5.1.1 User unknown";
  assert.deepEqual(pick(classify(said, "rcpt")), ["invalid_recipient", "hard", false, true]);
  assert.deepEqual(pick(classify(said, "mail")), ["auth", "soft", false, false]);
  assert.deepEqual(pick(classify(said, "final")), ["invalid_recipient", "hard", false, false]);
  assert.deepEqual(pick(classify(said, "banner")), ["connection", "soft", true, false]);
  assert.deepEqual(pick(classify("554 No SMTP service here", "banner")), ["blocked", "soft", true, false]);
  assert.deepEqual(pick(classify("554 5.7.1 Access denied", "banner")), ["blocked", "soft", true, false]);
  assert.deepEqual(pick(classify("550 rejected", "final")), ["content", "soft", false, false]);
  assert.deepEqual(pick(classify("552 too large", "mail")), ["too_large", "soft", false, false]);
  assert.deepEqual(pick(classify("535 5.7.8 bad credentials", "auth")), ["auth", "soft", true, false]);
  assert.equal(classify("535 5.7.8 bad credentials", "auth").path_action, "suspend");
});

// What is unknown, invalid or not listed is our address, host or DNS: Postfix and Exim check the sender when RCPT comes.
const aboutUs = `
Your IP address is unknown
mx.example.com is not registered in DNS, address invalid
Rejected, client address is not valid
Host address is not in our list of accepted senders
Invalid return address
Reply-To address does not exist
Originating address does not exist
Sender address is not in the recipient's whitelist
Address is not listed in our whitelist
Mailbox of the sender does not exist
The account of your domain was not found
Envelope-from: no such user
Requested action not taken: mailbox unavailable invalid DNS MX or A/AAAA resource record
Your domain has no MX record
No MX record for your domain, address invalid
Adresse expéditeur inexistante
L'adresse de l'expéditeur n'existe pas
L'adresse de retour n'existe pas
Indirizzo mittente inesistente
Casella del mittente non trovata
Dirección de remitente inexistente
Endereço do remetente inexistente
Adresa expeditorului nu exista: utilizator inexistent
Ungültige Adresse des Absenders
Postfach nimmt keine Mail von unbekannten Absendern an
Het adres van de afzender bestaat niet
Adres nadawcy nie istnieje
Adresa odesílatele neexistuje
Adresa pošiljatelja ne postoji: korisnik nepoznat
Avsändaradressen finns inte
Afsenderadressen findes ikke
Avsenderadressen finnes ikke
Lähettäjän osoitetta ei löydy
Gönderen adresi geçersiz
A feladó címe ismeretlen
Адрес отправителя неизвестен
Адреса відправника: користувач не знайдений
Η διεύθυνση του αποστολέα δεν υπάρχει
כתובת השולח לא קיימת
عنوان المرسل غير صالح: المستخدم غير موجود
發件人地址不存在
发件人邮箱不存在
差出人のアドレスが存在しません
발신자 주소가 존재하지 않습니다
Địa chỉ người gửi không tồn tại
The server you are using is not registered
Invalid address in MAIL command
Bounce address does not exist
Address not in my address book
Die Adresse Ihres Servers ist unbekannt
Votre adresse est inconnue
Su dirección no existe
Il tuo indirizzo è sconosciuto
Seu endereço é desconhecido
Uw adres is onbekend
Deres adresse er ukendt: adressen findes ikke
Twój adres jest nieznany
Ваш адрес не найден
您的邮箱地址无效
あなたのアドレスは存在しません
귀하의 주소가 존재하지 않습니다
Adresiniz geçersiz
`;

test("a plain refusal of our own address, host or DNS is soft and suppresses nobody, in any language", () => {
  for (const text of lines(aboutUs)) {
    for (const code of [550, 551, 553]) {
      const result = classifyReply({ stage: "rcpt", code, enhanced: null, text });
      assert.deepEqual([result.bounce_type, result.suppress], ["soft", false], `${code} ${text} (${result.rule})`);
      assert.ok(["auth", "content", "dns"].includes(result.class), `${text} (${result.rule})`);
    }
  }
  const gmx = "Requested action not taken: mailbox unavailable invalid DNS MX or A/AAAA resource record";
  const own = classifyReply({ stage: "rcpt", code: 550, enhanced: null, text: gmx, site: "gmx" });
  assert.deepEqual(pick(own), ["auth", "soft", false, false]);
});

const passing = `
User not found: temporary directory error
LDAP lookup failure, recipient could not be found, try again later
Recipient unknown, database error
User unknown, please try again
Utilisateur inconnu (erreur temporaire)
Destinataire inconnu, réessayez plus tard
Benutzer unbekannt, vorübergehender Fehler
Usuario desconocido, inténtelo más tarde
Utente sconosciuto: errore temporaneo
Gebruiker onbekend (tijdelijk)
Nieznany użytkownik, spróbuj później
Пользователь не найден, попробуйте позже
用户不存在，请稍后再试
宛先が見つかりません。しばらくしてから
사용자를 찾을 수 없습니다. 나중에
`;

test("a passing trouble of theirs is soft and suppresses nobody, whatever else the words say", () => {
  for (const text of lines(passing)) {
    const result = classifyReply({ stage: "rcpt", code: 550, enhanced: null, text });
    assert.deepEqual([result.bounce_type, result.suppress], ["soft", false], `${text} (${result.rule})`);
  }
});

const unknown = `
No such user here
Unknown user; please check the address and try again
The mailbox does not exist. Check for typos, see https://example.com/sender/ip?later
<sender@temporary.example> no such user
<user@mx.example.com>: user unknown
Sorry, no mailbox here by that name is currently available
Requested action not taken: mailbox unavailable: no such user
Destinatário inexistente
<u@x.example>: Recipient address rejected: host mx.x.example[192.0.2.9] said: no such user (in reply to RCPT TO command)
Your message to <u@x.example> could not be delivered: user unknown
Ihre Nachricht konnte nicht zugestellt werden: Empfänger unbekannt
Empfaenger nicht gefunden
Ungueltiger Empfaenger
Su mensaje no fue entregado: el usuario no existe
Ваше письмо не доставлено: получатель не найден
您发送的邮件收件人不存在
Kullanıcı bulunamadı, ileti gönderilemedi
المستخدم غير موجود، المرسل إليه غير معروف
收件人不存在，请检查后再试
`;

test("words that are about the recipient still suppress", () => {
  for (const text of lines(unknown)) {
    const result = classifyReply({ stage: "rcpt", code: 550, enhanced: null, text });
    assert.deepEqual(pick(result), ["invalid_recipient", "hard", false, true], `${text} (${result.rule})`);
  }
});

// Reply | class, type, retry, path action
const mistaken = `
552 5.2.2 <u@x.example> Recipient quota exceeded | mailbox_full soft - -
552 5.2.2 Email quota exceeded | mailbox_full soft - -
552 5.2.2 Storage limit reached | mailbox_full soft - -
552 Recipient quota exceeded | mailbox_full soft - -
552 Storage limit reached | mailbox_full soft - -
452 4.2.2 message quota exceeded | mailbox_full soft retry -
552 5.2.3 Message limit exceeded | too_large soft - -
552 5.3.4 Message limit exceeded | too_large soft - -
550 5.4.5 Daily email quota exceeded | rate_limited soft retry slow
452 Your email quota exceeded | rate_limited soft retry slow
450 4.1.1 <u@x.example>: Recipient address rejected: unverified address: connect to mail.x.example[192.0.2.10]:25: Connection refused | connection soft retry -
450 4.1.1 <u@x.example>: Recipient address rejected: unverified address: host 10.0.0.5[10.0.0.5] said: 554 5.7.1 Client host rejected | busy soft retry -
451 4.4.1 connect to 10.0.0.5[10.0.0.5]:24: Connection refused | connection soft retry -
451 connection to 10.0.0.5: connection refused | connection soft retry -
421 Connection refused from 192.0.2.1, blocked | blocked soft retry suspend
550-Verification failed for <b+t@b.example> 550-The mail server could not deliver mail to b+t@b.example.  The account or domain may not exist, they may be blacklisted, or missing the proper dns entries. 550 Sender verify failed | auth soft - -
550 Sender verify failed | auth soft - -
550 5.7.1 domain example.com does not accept mail from external senders | content soft - -
550 This domain does not accept mail from you | content soft - -
550 Your domain has no MX record | auth soft - -
550 Sender domain has no MX record | auth soft - -
556 Domain does not accept mail | bad_domain hard - -
550 Host does not accept messages | bad_domain hard - -
`;

test("words that stand in replies of several kinds are read by what stands around them", () => {
  for (const row of lines(mistaken)) {
    const [raw = "", want = ""] = row.split(" | ");
    const { class: mailClass, bounce_type, retry, path_action, rule } = classify(raw);
    assert.equal(
      `${mailClass} ${bounce_type} ${retry ? "retry" : "-"} ${path_action ?? "-"}`,
      want,
      `${raw} (${rule})`,
    );
  }
});

function lines(table: string): string[] {
  return table.trim().split("\n");
}

function pick(result: ReturnType<typeof classifyReply>) {
  return [result.class, result.bounce_type, result.retry, result.suppress];
}

test("a provider's own pattern is tried before the others, and some only for that provider", () => {
  const gmx = "550 Requested action not taken: mailbox unavailable";
  assert.equal(classify(gmx, "rcpt", "gmx").suppress, true);
  assert.equal(classify(gmx, "rcpt", "other").suppress, false);
});

test("nothing outside the six codes and plain 550, 551, 553 with such words ever suppresses, at any stage", () => {
  const every = rounds(10, 1);
  const texts = entries.map((entry) => read(entry.example).text).filter((_, n) => n % every === 0);
  for (const code of [250, 354, 421, 450, 451, 452, 500, 501, 521, 550, 551, 552, 553, 554, 556]) {
    for (const enhanced of [null, "4.1.1", "4.2.1", "5.0.0", "5.1.0", "5.1.4", "5.3.0", "5.4.1", "5.7.1", "5.7.26"]) {
      for (const stage of STAGES) {
        for (const text of texts) {
          const result = classifyReply({ stage, code, enhanced, text });
          const isPlain = enhanced === null && stage === "rcpt" && [550, 551, 553].includes(code);
          assert.ok(isPlain || !result.suppress, `${stage} ${code} ${enhanced} ${text}`);
          assert.ok(!result.suppress || result.bounce_type === "hard");
          if (code < 500) assert.deepEqual([result.retry, result.bounce_type], [true, "soft"]);
        }
      }
    }
  }
});

function ianaCodes(): { name: string; basic: string[] }[] {
  const rows = readFileSync(registry, "utf8").matchAll(/^X\.(\d+\.\d+),(?:"[^"]*"|[^,]*),("[^"]*"|[^,]*),/gm);
  return [...rows].map((row) => ({ name: row[1]!, basic: row[2]!.match(/[245]\d\d/g) ?? [] }));
}

test("every code of the IANA registry is mapped: 4 is temporary, 5 permanent", { skip: missing(registry) }, () => {
  const codes = ianaCodes();
  assert.ok(codes.length >= 70, String(codes.length));
  const unmapped: string[] = [];
  for (const { name, basic } of codes) {
    const permanent = basic.find((code) => code.startsWith("5")) ?? "550";
    const temporary = basic.find((code) => code.startsWith("4")) ?? "450";
    const hard = classify(`${permanent} 5.${name} `);
    const soft = classify(`${temporary} 4.${name} `);
    if (hard.rule !== `x.${name}`) unmapped.push(name);
    assert.deepEqual([soft.retry, soft.bounce_type, soft.suppress], [true, "soft", false], name);
    assert.equal(hard.retry, false, name);
    assert.equal(hard.suppress, SUPPRESSING.includes(`5.${name}`), name);
  }
  // 0.0 says nothing: the reply code decides.
  assert.deepEqual(unmapped, ["0.0"]);
});

const KUMOMTA_CLASSES: Record<string, string[]> = {
  InvalidRecipient: ["invalid_recipient"],
  BadDomain: ["bad_domain"],
  InactiveMailbox: ["inactive_mailbox"],
  InvalidSender: ["auth"],
  QuotaIssues: ["mailbox_full", "too_large"],
  NoAnswerFromHost: ["connection"],
  BadConnection: ["connection"],
  DNSFailure: ["dns"],
  RoutingErrors: ["routing"],
  TransientFailure: ["busy"],
  MessageExpired: ["expired"],
  // One row of the design's table.
  ProtocolErrors: ["content", "auth"],
  AuthenticationFailed: ["content", "auth"],
  PolicyRelated: ["content", "rate_limited"],
  TooManyRecipients: ["rate_limited"],
};

function kumomtaRules(): { rule: string; regexp: RegExp }[] {
  const rules: { rule: string; regexp: RegExp }[] = [];
  let rule = "";
  for (const line of readFileSync(kumomta, "utf8").split("\n")) {
    rule = /^(\w+) = \[/.exec(line)?.[1] ?? rule;
    const pattern = /^ {2}("(?:[^"\\]|\\.)*")/.exec(line)?.[1];
    if (pattern) rules.push({ rule, regexp: new RegExp(JSON.parse(pattern)) });
  }
  return rules;
}

test("every rule of KumoMTA's registry file agrees, but for the listed differences", { skip: missing(kumomta) }, () => {
  const rules = kumomtaRules();
  assert.ok(rules.length >= 20);
  const found = new Set<string>();
  for (const { rule, regexp } of rules) {
    const inputs = matchingInputs(regexp);
    assert.ok(inputs.length > 0, `${rule} ${regexp}`);
    for (const { raw, name } of inputs) {
      const ours = classify(raw).class;
      if (!KUMOMTA_CLASSES[rule]?.includes(ours)) found.add(`${rule} ${name} ${ours}`);
    }
  }
  const listed = differences.kumomta.map((entry: { rule: string; code: string; ours: string }) => {
    return `${entry.rule} ${entry.code} ${entry.ours}`;
  });
  assert.deepEqual([...found].sort(), listed.sort());
});

/** Replies with code and enhanced code of one kind that the pattern matches. */
function matchingInputs(regexp: RegExp): { raw: string; name: string }[] {
  const names = [...Array(8).keys()].flatMap((subject) =>
    [...Array(41).keys()].map((detail) => `${subject}.${detail}`),
  );
  const inputs: { raw: string; name: string }[] = [];
  for (const code of [421, 450, 451, 452, 500, 503, 525, 535, 550, 552, 554]) {
    for (const name of names) {
      const raw = `${code} ${String(code)[0]}.${name} `;
      if (regexp.test(`${raw}x`)) inputs.push({ raw, name: `x.${name}` });
    }
  }
  return inputs;
}

type Bounce = { diagnostic: string; hardbounce: number; reason: string };

test("replies quoted in real bounces: hard where Sisimai says so, but for the listed ones", {
  skip: missing(sisimai),
}, () => {
  const files: Record<string, { bounces: Bounce[] }> = JSON.parse(readFileSync(sisimai, "utf8"));
  const seen = new Set<string>();
  const softer = new Set<string>();
  let hard = 0;
  for (const [file, { bounces }] of Object.entries(files)) {
    for (const bounce of bounces ?? []) {
      const raw = /(?:^|: ?|said: |smtp; ?)(5\d\d[ -].*)$/s.exec(bounce.diagnostic ?? "")?.[1];
      if (!raw || !bounce.hardbounce || seen.has(raw)) continue;
      seen.add(raw);
      if (classify(raw).bounce_type === "hard") hard++;
      else softer.add(file);
    }
  }
  assert.ok(hard > 40, String(hard));
  assert.deepEqual([...softer].sort(), differences.sisimai.map((entry: { file: string }) => entry.file).sort());
});

test("a hostile text of the full length is classified in a moment", () => {
  const words = [...new Set(entries.flatMap((entry) => entry.example.toLowerCase().split(/\s+/)))];
  const texts = ["a", "mail ", "recipient address ", "user ", "message size ", "<a@b> ", "1.1.1.1 ", "(", "from "]
    .concat(words.map((word) => `${word} `))
    .map((word) => word.repeat(Math.ceil(1000 / word.length)).slice(0, 1000));
  texts.push(`${"a".repeat(999)}@`, `${"a@".repeat(500)}`, `${"mailbox of user account ".repeat(41)}exceeded`);
  let slowestMs = 0;
  for (const text of texts) {
    const refusal: Refusal = { stage: "rcpt", code: 550, enhanced: null, text };
    slowestMs = Math.max(
      slowestMs,
      processorMs(() => classifyReply(refusal)),
    );
  }
  assert.ok(slowestMs < 2_000, `${slowestMs} ms`);
});
