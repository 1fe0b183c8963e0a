// What the stories in the browser stand on: a running Postern with its database, its recipients' server and its name server,
// with mail of every outcome in it, and the dashboard in a real Chromium beside it.
import { existsSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";
import { type Scene, setScene } from "../../test/support/scene.ts";
import { emailWithStatus, receiveAt } from "../../test/support/stories.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { fillDomains } from "./fill-domains.ts";
import { fillInbound, type InboundRecords } from "./fill-inbound.ts";
import { addPatternDomain, fillMasked, type MaskedRecords, REFUSED_ONCE } from "./fill-masked.ts";
import { fillOperator, type OwnMailRecords } from "./fill-operator.ts";
import { fillTemplates, type TemplateRecords } from "./fill-templates.ts";
import { invite, inviteToSignUp, type Person, setUpFirst, signUp } from "./persons.ts";

const CHROMIUMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** A step of a story; longer than any wait that the dashboard itself has. */
const STEP_MS = 15_000;
const SETTLED_MS = 20_000;

export type Mails = Record<
  "delivered" | "deferred" | "bounced" | "simulated" | "hostile" | "several" | "refused" | "scheduled",
  string
>;
/** Ids: a verified domain, one whose records are missing, an endpoint, and an import that is not committed. */
export type Records = { verified: string; pending: string; webhook: string; job: string };
export type Stage = {
  scene: Scene;
  /** Who set it up: owner and operator. Pages are opened for them unless a story says otherwise. */
  owner: Person;
  /** Signed up; their organization is in review. */
  newcomer: Person;
  mails: Mails;
  records: Records;
  /** An invitation and a link to sign up that nobody uses. */
  links: { invitation: string; signUp: string };
  inbound: InboundRecords;
  templates: TemplateRecords;
  masked: MaskedRecords;
  own_mail: OwnMailRecords;
  /** A page of its own; what it complains of (console errors, policy reports, requests to elsewhere) lands in `complaints`. */
  open(options?: Opening): Promise<Opened>;
  /** Pictures of all pages that are open, `<path>-1.png` and so on; answers where they are. */
  picture(path: string): Promise<string[]>;
  [Symbol.asyncDispose](): Promise<void>;
};
/** `as` null: nobody is signed in. `at`: another Postern than the stage's. */
export type Opening = { width?: number; dark?: boolean; as?: Person | null; at?: string };
export type Opened = { page: Page; complaints: string[]; close(): Promise<void> };

/** The Chromium of this machine, or null. */
export function findChromium(): string | null {
  return process.env.POSTERN_CHROMIUM ?? CHROMIUMS.find((path) => existsSync(path)) ?? null;
}

export async function setStage(executablePath: string): Promise<Stage> {
  const undo = new AsyncDisposableStack();
  try {
    const scene = undo.adopt(await setScene({ embedded: true, env: { POSTERN_SIGNUP: "open" } }), (one) => one.close());
    await scene.start();
    const owner = await setUpFirst(scene, { email: "ines@nordkiosk.example", name: "Ines Brandt" });
    const records = await fillRecords(scene);
    const mails = await fillWithMail(scene);
    await addPatternDomain(scene);
    const inbound = await fillInbound(scene);
    const templates = await fillTemplates(scene);
    const links = {
      invitation: await invite(scene, owner, { email: "guest@nordkiosk.example", role: "viewer" }),
      signUp: await inviteToSignUp(scene, owner, "founder@atelier.example"),
    };
    const newcomer = await signUp(scene, owner, { email: "remi@atelier-brun.example", name: "Rémi Brun" });
    const masked = await fillMasked(scene);
    await fillDomains(scene);
    const own_mail = await fillOperator(scene, owner);
    const browser = undo.adopt(await launch(executablePath), (one) => one.close());
    const open: Stage["open"] = (options) => openPage(browser, { as: owner, at: scene.base_url, ...options });
    const picture = async (path: string) => {
      const pages = browser.contexts().flatMap((context) => context.pages());
      for (const [place, page] of pages.entries())
        await page.screenshot({ path: `${path}-${place + 1}.png` }).catch(() => undefined);
      return pages.map((page) => page.url());
    };
    return {
      scene,
      owner,
      newcomer,
      links,
      mails,
      records,
      inbound,
      templates,
      masked,
      own_mail,
      open,
      picture,
      [Symbol.asyncDispose]: () => undo.disposeAsync(),
    };
  } catch (error) {
    await undo.disposeAsync();
    throw error;
  }
}

function launch(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** A telephone's, or a screen's. */
export function windowOf(width: number): { width: number; height: number } {
  return { width, height: width < 600 ? 760 : 900 };
}

async function openPage(
  browser: Browser,
  { width = 1280, dark = false, as = null, at: baseURL }: Opening & { at: string },
): Promise<Opened> {
  const context = await browser.newContext({
    baseURL,
    viewport: windowOf(width),
    colorScheme: dark ? "dark" : "light",
    locale: "en-GB",
  });
  context.setDefaultTimeout(STEP_MS);
  if (as !== null) await context.addCookies([{ name: "postern", value: as.token, url: baseURL }]);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith("http") && origin !== baseURL) complaints.push(`a request to ${request.url()}`);
  });
  return { page, complaints, close: () => context.close() };
}

const HOSTILE =
  "<script>parent.document.title='owned'</script><img src=https://track.example/p.gif><link rel=stylesheet href=https://evil.example/a.css>" +
  "<style>body{background:url(https://evil.example/b)}</style><form action=https://evil.example><button>Go</button></form>" +
  `<p dir=rtl>مرحبا</p><a href=https://evil.example target=_top>Win</a><table>${`<tr><td>${"wide cell ".repeat(100)}</td></tr>`.repeat(5_000)}</table>` +
  "<iframe src=https://evil.example></iframe><p>The visible end</p>";

const IMPORT = [
  "status,reason,email,created",
  "5.1.1,550 5.1.1 no such user,gone@import.example,1700000000",
  "5.1.1,550 5.1.1 no such user,left@import.example,1700000001",
  "5.1.1,550 5.1.1 no such user,not an address,1700000002",
].join("\n");

async function fillRecords(scene: Scene): Promise<Records> {
  const make = async (path: string, body: unknown): Promise<Record<string, unknown>> => {
    const made = await scene.ask("POST", path, body);
    if (made.status !== 201) throw new Error(`not made: ${JSON.stringify(made.body)}`);
    return made.body;
  };
  const { id } = await addVerifiedDomain(scene, scene.dns, "nordkiosk.example");
  const pending = await make("/v1/domains", { domain: "atelier-brun.example", type: "outbound" });
  const events = ["email.delivered", "email.bounced", "email.deferred"];
  const { webhook } = await make("/v1/webhooks", { url: `${scene.receiver.url}/hook`, events });
  await make("/v1/suppressions", { email: "asked@freemail.example", note: "By phone, 23 November" });
  const { job } = await make("/v1/imports/suppressions/preview", { csv: IMPORT });
  return {
    verified: String(id),
    pending: String(pending.id),
    webhook: (webhook as { id: string }).id,
    job: (job as { id: string }).id,
  };
}

async function fillWithMail(scene: Scene): Promise<Mails> {
  for (const domain of ["posteo.example", "kontor.example", "freemail.example"])
    receiveAt(scene.dns, domain, "mx.recipient.example");
  scene.sink.onRcpt((address) => {
    if (address.startsWith("old.address")) return { code: 550, text: "5.1.1 No such user here" };
    if (address.endsWith("kontor.example"))
      return { code: 451, text: "4.7.650 The mail server has been temporarily rate limited due to IP reputation." };
    return null;
  });
  const refused = new Set<string>();
  scene.sink.onMessage(({ to, bytes, message_id }) => {
    const isNew = bytes.includes(REFUSED_ONCE) && !refused.has(message_id);
    if (isNew) refused.add(message_id);
    return isNew || to.includes("strict@posteo.example") ? { code: 554, text: "5.7.1 Message rejected as spam" } : null;
  });
  const send = async (fields: Record<string, unknown>, key = scene.live_key): Promise<string> => {
    const response = await fetch(`${scene.base_url}/v1/send`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        from: "Nordkiosk <billing@nordkiosk.example>",
        html_body: "<h1>Hello</h1><p>Thank you.</p>",
        ...fields,
      }),
    });
    const answer = (await response.json()) as { id: string };
    if (response.status !== 202) throw new Error(`not accepted: ${JSON.stringify(answer)}`);
    return answer.id;
  };
  for (let number = 1; number <= 60; number += 1)
    await send(
      {
        to: [`reader${number}@posteo.example`],
        subject: `Your parcel ${1000 + number} is on its way`,
        tags: ["parcel"],
      },
      scene.test_key,
    );
  const mails: Mails = {
    hostile: await send({
      to: ["ines@posteo.example"],
      subject: "You have <b>won</b>",
      html_body: HOSTILE,
      attachments: [{ filename: "prize-\u202efdp.zip", content: Buffer.from("PK").toString("base64") }],
    }),
    several: await send({
      to: ["sofia@posteo.example", "old.address.2@freemail.example"],
      cc: ["k.brandt@posteo.example"],
      subject: "Opening hours in December",
    }),
    scheduled: await send({
      to: ["list@posteo.example"],
      subject: "Happy New Year",
      scheduled_at: new Date(Date.now() + 86_400_000).toISOString(),
    }),
    refused: await send({ to: ["strict@posteo.example"], subject: "Ten per cent off" }),
    simulated: await send({ to: ["test@posteo.example"], subject: "Your invoice 2026-1182" }, scene.test_key),
    bounced: await send({ to: ["old.address@freemail.example"], subject: "Welcome to Nordkiosk" }),
    deferred: await send({
      to: ["t.okafor@kontor.example"],
      subject: "Your invoice 2026-1183",
      tags: ["invoice", "november"],
    }),
    delivered: await send({
      to: ["Maja Lind <maja.lind@posteo.example>"],
      subject: "Your invoice 2026-1184",
      text_body: "Hello Maja,\n\nhere is your invoice.",
      tags: ["invoice"],
      metadata: { order: "A-1184" },
      attachments: [{ filename: "invoice.pdf", content: Buffer.from("%PDF-1.4\n").toString("base64") }],
    }),
  };
  await emailWithStatus(scene, mails.delivered, ["delivered"], SETTLED_MS);
  await emailWithStatus(scene, mails.deferred, ["deferred"], SETTLED_MS);
  await emailWithStatus(scene, mails.bounced, ["bounced"], SETTLED_MS);
  await emailWithStatus(scene, mails.refused, ["bounced"], SETTLED_MS);
  await emailWithStatus(scene, mails.several, ["partially_delivered", "bounced"], SETTLED_MS);
  await emailWithStatus(scene, mails.hostile, ["delivered"], SETTLED_MS);
  return mails;
}
