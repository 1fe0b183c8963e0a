// Notices that a mailbox is full: under any subject ("Hello", "Notification"), often without a word of a mail that failed,
// and easily taken for what providers write to the owner of a mailbox. Only reads texts; the words for a full mailbox
// are those of live replies (mail/smtp/reply-texts.json).

import { classifyReply } from "../smtp/classify.ts";

const paragraphsMax = 6;
const paragraphCharsMax = 1_000;

const mailbox =
  "(?:mail ?box|inbox|account|storage|quota|postfach|bo[îi]te|messagerie|compte|buz[óo]n|cuenta|casella|caixa|skrzynk\\p{L}+|postvak|ящик|邮箱|郵箱|信箱|メールボックス)";
const ownMailbox = new RegExp(
  `(?<!\\p{L})(?:your|you|dein|ihre?|votre|vos|ton|ta|tu|su|tuo|tua|vostra|seu|sua|twoja|uw|je|din|ваш|您的?|你的?|お客様の|あなたの)\\s?(?:[\\p{L}-]+ )?${mailbox}(?!\\p{L}*@)|\\byou (?:have (?:exceeded|reached|used|run)|are (?:over|out of|using|running)|can ?not (?:send|receive)|can no longer)\\b`,
  "iu",
);
const notYetFull =
  /\b(?:almost|nearly|close to|approaching|will soon|soon be|fast voll|beinahe|presque|bient[ôo]t|casi|quasi|quase|bijna|prawie|n[æä]sten)\b|\b[5-9]\d ?%|почти|скоро|即将|快满|快滿|まもなく|もうすぐ/iu;

/** Whether the text says that a mailbox is full, and not to its owner. */
export function saysMailboxFull(text: string): boolean {
  if (isToOwner(text)) return false;
  const paragraphs = text.split(/\n[ \t]*\n/, paragraphsMax).map((one) => one.slice(0, paragraphCharsMax));
  return [paragraphs.join(" "), ...paragraphs].some((paragraph) => isFull(paragraph.replace(/\s+/g, " ")));
}

/** Whether the text warns the reader of their own mailbox ("Your mailbox is almost full"): no mail came back. */
export function isToOwner(text: string): boolean {
  const said = text.slice(0, paragraphsMax * paragraphCharsMax).replace(/\s+/g, " ");
  return ownMailbox.test(said) || notYetFull.test(said);
}

function isFull(text: string): boolean {
  return classifyReply({ stage: "final", code: 554, enhanced: null, text }).rule.startsWith("mailbox-");
}
