// Providers at which anybody has a mailbox. There a longer local part is another person; at a domain of the owner's own it is
// rather the mailbox with something glued to it, and in doubt the mailbox.
const PROVIDERS = new Set([
  ...[
    "gmail.com",
    "googlemail.com",
    "outlook.com",
    "outlook.de",
    "outlook.fr",
    "hotmail.com",
    "hotmail.co.uk",
    "hotmail.fr",
  ],
  ...[
    "hotmail.de",
    "hotmail.it",
    "hotmail.es",
    "live.com",
    "live.co.uk",
    "live.fr",
    "live.nl",
    "msn.com",
    "passport.com",
  ],
  ...[
    "yahoo.com",
    "yahoo.co.uk",
    "yahoo.co.in",
    "yahoo.co.jp",
    "yahoo.de",
    "yahoo.fr",
    "yahoo.it",
    "yahoo.es",
    "ymail.com",
  ],
  ...[
    "rocketmail.com",
    "aol.com",
    "aim.com",
    "icloud.com",
    "me.com",
    "mac.com",
    "proton.me",
    "protonmail.com",
    "pm.me",
  ],
  ...["protonmail.ch", "tutanota.com", "tutanota.de", "tuta.io", "tuta.com", "fastmail.com", "fastmail.fm", "zoho.com"],
  ...[
    "zohomail.com",
    "zohomail.eu",
    "mailbox.org",
    "posteo.de",
    "posteo.net",
    "gmx.de",
    "gmx.net",
    "gmx.com",
    "gmx.at",
  ],
  ...["gmx.ch", "web.de", "t-online.de", "freenet.de", "arcor.de", "mail.de", "mail.com", "email.com", "1und1.de"],
  ...[
    "orange.fr",
    "wanadoo.fr",
    "free.fr",
    "laposte.net",
    "sfr.fr",
    "bbox.fr",
    "libero.it",
    "virgilio.it",
    "tiscali.it",
  ],
  ...[
    "alice.it",
    "tin.it",
    "bluewin.ch",
    "hispeed.ch",
    "ziggo.nl",
    "kpnmail.nl",
    "xs4all.nl",
    "skynet.be",
    "telenet.be",
  ],
  ...["btinternet.com", "sky.com", "virginmedia.com", "talktalk.net", "ntlworld.com", "comcast.net", "verizon.net"],
  ...["att.net", "sbcglobal.net", "bellsouth.net", "cox.net", "charter.net", "earthlink.net", "rogers.com", "shaw.ca"],
  ...[
    "bigpond.com",
    "optusnet.com.au",
    "mail.ru",
    "bk.ru",
    "inbox.ru",
    "list.ru",
    "yandex.ru",
    "yandex.com",
    "yandex.by",
  ],
  ...[
    "yandex.kz",
    "ya.ru",
    "rambler.ru",
    "ukr.net",
    "seznam.cz",
    "centrum.cz",
    "wp.pl",
    "o2.pl",
    "onet.pl",
    "interia.pl",
  ],
  ...["abv.bg", "freemail.hu", "citromail.hu", "uol.com.br", "bol.com.br", "terra.com.br", "ig.com.br", "qq.com"],
  ...["163.com", "126.com", "sina.com", "sohu.com", "yeah.net", "foxmail.com", "naver.com", "daum.net", "hanmail.net"],
  ...["nate.com", "rediffmail.com", "hey.com", "duck.com", "inbox.lv", "mail.ee", "online.no", "telia.com"],
]);

/** From so many characters on a local part that stands behind letters is hidden; `a@` would be found in every `anna@`. */
const LOCAL_CHARS_MIN = 4;

/**
 * True if the address is hidden although `before` stands right before it: always after a sign (`ab-`, `x.`, `m_`), after
 * letters where the local part is more than an initial, and never at public providers.
 */
export function isGlued(before: string, local: string, domain: string): boolean {
  if (PROVIDERS.has(domain)) return false;
  return /[^\p{L}\p{N}]$/u.test(before) || local.length >= LOCAL_CHARS_MIN;
}
