// Every word of the page, in every language. {name} is filled in. Write whole sentences: order of words differs.

const en = {
  language: "English",
  direction: "ltr",
  title: "A survey that nobody can read",
  loading: "Reading your invitation …",
  chooseLanguage: "Language",

  // without an invitation
  pasteTitle: "Your invitation",
  pasteWords: "Open the link from your invitation, or paste the code that stands in it.",
  pasteLabel: "Invitation code or link",
  pasteButton: "Open",
  earlierTitle: "Answered on this device",
  earlierButton: "Show: {question}",

  // who asks
  asks: "{owner} asks",
  purpose: "Why: {purpose}",
  contact: "Questions? {contact}",
  noName: "(no name given)",
  organizations: "Two organizations count together: {s1} and {s2}. Neither can read your answer alone.",
  sameOrganization: "Both servers are run by {s1}. Nobody else keeps watch: answer only if you trust it not to read your answer.",
  invited: "At most {n} people are invited. Nothing is published unless at least {minimum} of them are counted.",
  choose: "Choose one answer",
  continue: "Continue",
  chooseFirst: "Choose one answer first.",

  // promise
  promiseTitle: "What is promised",
  promise: "Suppose that somebody thinks two answers are equally likely to be yours. After seeing the result this person can be at most {sure} % sure which one it is.",
  promiseWeak: "That is hardly any protection: answer only what anybody may know.",
  promiseServers: "This also holds for each of the two organizations, and even if other participants, up to {phi}, tell all they know.",
  promiseDelta: "In at most {delta} of all cases more could be seen.",
  promiseFloor: "This holds only if, besides you, at least {floor} people give each of the answers. The owner says so; nobody can check it here.",
  promiseNumbers: "In numbers: differential privacy, epsilon = {epsilon}, delta = {delta}, when one person's answer is replaced.",
  promiseTwice: "Every further survey among the same people adds to what can be seen.",

  // checked
  checkedTitle: "What this page has checked",
  checkedDigest: "What you read here is exactly what your invitation was made for.",
  checkedTable: "The noise that hides your answer is computed on your device, and it is the published one.",
  checkedPromise: "The promise follows from the published numbers: computed here, for {minimum} and for {n} people.",
  checkedNot: "Not checked, because no page can: that the owner invites real people, that the two organizations do not work together, and that they count correctly.",

  // not covered
  uncoveredTitle: "What is not covered",
  uncoveredBoth: "The two organizations together could read your answer.",
  uncoveredPage: "This page comes from {s1}. If it sent you another program, that program could read your answer. Whoever wants to be sure compares the published hash of the page, or uses the installed program.",
  uncoveredPart: "{s1} sees that you take part and when, not what you answer.",
  uncoveredCounts: "A server, or participants, could make the result wrong without anybody noticing.",
  uncoveredDevice: "Whoever watches your screen sees your answer.",

  // confirm
  confirmTitle: "This is what will leave your device",
  confirmAnswer: "Your answer, which stays here:",
  confirmShare: "For {s1}: random-looking numbers ({bytes} bytes)",
  confirmBlob: "For {s2}: a sealed message that {s1} passes on and cannot open ({bytes} bytes)",
  confirmWords: "Noise was drawn and your answer was split in two. Each part alone is pure chance: it would look the same for every answer.",
  confirmOnce: "You can answer once. You can take it back until the survey closes.",
  send: "Send",
  back: "Back",

  // standing
  waitingTitle: "Kept on this device, not sent yet",
  waitingWords: "The server cannot be reached now. This page tries again by itself, with exactly the same bytes. You can also close it and come back later.",
  earlyWords: "The survey is not open yet. This page tries again by itself; you can also come back later.",
  sendingTitle: "Sending …",
  sentTitle: "Thank you. Your answer has arrived",
  sentWords: "The server has signed that it wrote what you sent; your device has checked the signature.",
  tooLateWords: "It was too late to take your answer back: it is being counted.",
  refusedTitle: "The server did not take this answer",
  refusedConflict: "With this invitation something else was sent before, perhaps from another device. The first answer stands.",
  refusedLate: "The survey is closed.",
  refusedUnknown: "The server does not know this invitation.",
  refusedOther: "The server says: {words}",
  leavingTitle: "Taking your answer back …",
  leavingWords: "The server cannot be reached now. This page tries again by itself.",
  withdrawnTitle: "Your answer is taken back",
  withdrawnWords: "The server has signed it: your answer will not be counted. This cannot be undone.",
  countedTitle: "You were counted",
  countedWords: "The result is published, and your device has checked the proof that your answer is in it.",
  uncountedTitle: "You were not counted",
  uncountedWords: "The result is published without your answer. If you have a receipt, it proves that the server had accepted it.",
  endedTitle: "The survey ended without a result",
  endedWords: "Reason: {reason}",
  disbelieved: "The server said something that it could not prove ({times} times). It was not believed. If this goes on, tell the contact of the survey.",
  progressTitle: "Progress",
  progress: "{users} of {people} people have answered.",
  progressClosed: "The answers are being counted.",
  closes: "The survey closes on {when}.",
  receiptButton: "Save receipt",
  receiptWords: "The receipt proves what the server has signed. It does not say what you answered.",
  checkButton: "Was I counted?",
  checkedNothing: "There is no result yet.",
  withdrawButton: "Take my answer back",
  withdrawSure: "Take your answer back for good? You cannot answer again.",
  withdrawYes: "Yes, take it back",
  withdrawNo: "No, keep it",
  forgetButton: "Forget this survey on this device",
  forgetWords: "When it has forgotten, this device can no longer take the answer back or check whether it was counted.",
  kept: "This device keeps what was sent, so that it can be sent again, not what you answered.",

  // result
  closedTitle: "This survey is closed",
  closedWords: "You have not answered on this device, and no answers are taken any more.",
  resultTitle: "Result",
  resultCaption: "Estimated shares of the {included} people who were counted",
  resultItem: "Answer",
  resultShare: "Estimate",
  resultRange: "95 % interval",
  resultWords: "Noise protects everybody, so these are estimates. In 95 of 100 such surveys the true share of an answer among the people counted lies in its interval. An estimate can be below 0.",
  resultRealized: "Privacy kept: epsilon = {epsilon}, delta = {delta}.",
  percent: "{value} %",
  range: "{low} to {high} %",

  // refusals
  refusalTitle: "Do not answer here",
  refusalNothing: "Nothing was sent.",
  refusal_digest: "The server shows another survey than the one that your invitation was made for. Ask whoever invited you.",
  refusal_derived: "Numbers of this survey do not follow from each other. Ask whoever invited you.",
  refusal_promise: "The promised privacy does not follow from the numbers of this survey. Ask whoever invited you.",
  refusal_malformed: "The server's words cannot be read. Ask whoever invited you.",
  refusal_version: "This survey is of another version than this page. Ask whoever invited you.",
  refusal_key: "A key of the second server cannot be used. Ask whoever invited you.",
  refusal_topology: "This survey needs several visits, in which your device helps others. A page that may be closed at any time cannot promise that: use the installed program.",
  refusal_mechanism: "This page cannot draw the noise of this survey: use the installed program.",
  refusal_code: "This is no invitation code. Copy it again from your invitation.",
  refusal_mistyped: "This code has a mistake in it. Copy it again from your invitation.",
  refusal_unknown: "The server does not know this survey. Is this the address from your invitation?",
  refusal_unreachable: "The server cannot be reached. Try again later.",
  refusal_browser: "This browser is too old, or does not allow what keeps your answer secret. Chrome and Edge from 137, Firefox from 130 and Safari from 17 can do it.",
  refusal_insecure: "This address is not protected (it begins with http:). Without protection a browser cannot keep your answer secret: ask for a link that begins with https:.",
  refusal_storage: "This browser does not let the page keep anything. In a private window or with blocked storage you cannot answer safely.",
  refusal_other: "Something went wrong: {words}",
  again: "Try again",
};

const de = {
  language: "Deutsch",
  direction: "ltr",
  title: "Eine Umfrage, die niemand lesen kann",
  loading: "Ihre Einladung wird gelesen …",
  chooseLanguage: "Sprache",

  pasteTitle: "Ihre Einladung",
  pasteWords: "Öffnen Sie den Link aus Ihrer Einladung, oder fügen Sie den Code ein, der darin steht.",
  pasteLabel: "Einladungscode oder Link",
  pasteButton: "Öffnen",
  earlierTitle: "Auf diesem Gerät beantwortet",
  earlierButton: "Anzeigen: {question}",

  asks: "{owner} fragt",
  purpose: "Wozu: {purpose}",
  contact: "Fragen? {contact}",
  noName: "(kein Name angegeben)",
  organizations: "Zwei Organisationen zählen gemeinsam: {s1} und {s2}. Keine kann Ihre Antwort allein lesen.",
  sameOrganization: "Beide Server betreibt {s1}. Niemand sonst passt auf: Antworten Sie nur, wenn Sie darauf vertrauen, dass Ihre Antwort nicht gelesen wird.",
  invited: "Höchstens {n} Personen sind eingeladen. Nichts wird veröffentlicht, wenn nicht mindestens {minimum} von ihnen gezählt werden.",
  choose: "Wählen Sie eine Antwort",
  continue: "Weiter",
  chooseFirst: "Wählen Sie zuerst eine Antwort.",

  promiseTitle: "Was versprochen wird",
  promise: "Angenommen, jemand hält zwei Antworten für gleich wahrscheinlich die Ihre. Nach dem Ergebnis kann diese Person höchstens zu {sure} % sicher sein, welche es ist.",
  promiseWeak: "Das ist kaum ein Schutz: Antworten Sie nur, was jeder wissen darf.",
  promiseServers: "Das gilt auch für jede der beiden Organisationen, und selbst wenn andere Teilnehmende, bis zu {phi}, alles verraten, was sie wissen.",
  promiseDelta: "In höchstens {delta} aller Fälle könnte mehr zu sehen sein.",
  promiseFloor: "Das gilt nur, wenn außer Ihnen mindestens {floor} Personen jede der Antworten geben. Das sagt, wer fragt; hier kann es niemand prüfen.",
  promiseNumbers: "In Zahlen: Differential Privacy, epsilon = {epsilon}, delta = {delta}, wenn die Antwort einer Person ersetzt wird.",
  promiseTwice: "Jede weitere Umfrage unter denselben Personen vergrößert, was zu sehen ist.",

  checkedTitle: "Was diese Seite geprüft hat",
  checkedDigest: "Was Sie hier lesen, ist genau das, wofür Ihre Einladung gemacht wurde.",
  checkedTable: "Das Rauschen, das Ihre Antwort verbirgt, wird auf Ihrem Gerät berechnet und ist das veröffentlichte.",
  checkedPromise: "Das Versprechen folgt aus den veröffentlichten Zahlen: hier berechnet, für {minimum} und für {n} Personen.",
  checkedNot: "Nicht geprüft, weil es keine Seite kann: dass echte Personen eingeladen sind, dass die beiden Organisationen nicht zusammenarbeiten, und dass sie richtig zählen.",

  uncoveredTitle: "Was nicht geschützt ist",
  uncoveredBoth: "Beide Organisationen gemeinsam könnten Ihre Antwort lesen.",
  uncoveredPage: "Diese Seite kommt von {s1}. Käme von dort ein anderes Programm, so könnte es Ihre Antwort lesen. Wer sicher sein will, vergleicht den veröffentlichten Hash der Seite oder nimmt das installierte Programm.",
  uncoveredPart: "{s1} sieht, dass und wann Sie teilnehmen, nicht was Sie antworten.",
  uncoveredCounts: "Ein Server oder Teilnehmende könnten das Ergebnis verfälschen, ohne dass es jemand merkt.",
  uncoveredDevice: "Wer auf Ihren Bildschirm sieht, sieht Ihre Antwort.",

  confirmTitle: "Das wird Ihr Gerät verlassen",
  confirmAnswer: "Ihre Antwort, die hier bleibt:",
  confirmShare: "Für {s1}: zufällig aussehende Zahlen ({bytes} Bytes)",
  confirmBlob: "Für {s2}: eine versiegelte Nachricht, die {s1} weitergibt und nicht öffnen kann ({bytes} Bytes)",
  confirmWords: "Rauschen wurde gezogen und Ihre Antwort in zwei Teile zerlegt. Jeder Teil allein ist reiner Zufall: Er sähe bei jeder Antwort genauso aus.",
  confirmOnce: "Sie können einmal antworten. Bis zum Ende der Umfrage können Sie die Antwort zurücknehmen.",
  send: "Absenden",
  back: "Zurück",

  waitingTitle: "Auf diesem Gerät aufbewahrt, noch nicht gesendet",
  waitingWords: "Der Server ist gerade nicht erreichbar. Diese Seite versucht es von selbst noch einmal, mit genau denselben Bytes. Sie können sie auch schließen und später wiederkommen.",
  earlyWords: "Die Umfrage ist noch nicht offen. Diese Seite versucht es von selbst noch einmal; Sie können auch später wiederkommen.",
  sendingTitle: "Wird gesendet …",
  sentTitle: "Danke. Ihre Antwort ist angekommen",
  sentWords: "Der Server hat unterschrieben, dass er aufgeschrieben hat, was Sie gesendet haben; Ihr Gerät hat die Unterschrift geprüft.",
  tooLateWords: "Zum Zurücknehmen war es zu spät: Ihre Antwort wird gezählt.",
  refusedTitle: "Der Server hat diese Antwort nicht angenommen",
  refusedConflict: "Mit dieser Einladung wurde vorher etwas anderes gesendet, vielleicht von einem anderen Gerät. Die erste Antwort gilt.",
  refusedLate: "Die Umfrage ist beendet.",
  refusedUnknown: "Der Server kennt diese Einladung nicht.",
  refusedOther: "Der Server sagt: {words}",
  leavingTitle: "Ihre Antwort wird zurückgenommen …",
  leavingWords: "Der Server ist gerade nicht erreichbar. Diese Seite versucht es von selbst noch einmal.",
  withdrawnTitle: "Ihre Antwort ist zurückgenommen",
  withdrawnWords: "Der Server hat es unterschrieben: Ihre Antwort wird nicht gezählt. Das lässt sich nicht rückgängig machen.",
  countedTitle: "Sie wurden gezählt",
  countedWords: "Das Ergebnis ist veröffentlicht, und Ihr Gerät hat den Beweis geprüft, dass Ihre Antwort darin ist.",
  uncountedTitle: "Sie wurden nicht gezählt",
  uncountedWords: "Das Ergebnis ist ohne Ihre Antwort veröffentlicht. Eine Quittung beweist, dass der Server sie angenommen hatte.",
  endedTitle: "Die Umfrage endete ohne Ergebnis",
  endedWords: "Grund: {reason}",
  disbelieved: "Der Server hat etwas gesagt, das er nicht beweisen konnte ({times}-mal). Es wurde nicht geglaubt. Wenn das so bleibt, sagen Sie es der Kontaktstelle der Umfrage.",
  progressTitle: "Stand",
  progress: "{users} von {people} Personen haben geantwortet.",
  progressClosed: "Die Antworten werden gezählt.",
  closes: "Die Umfrage endet am {when}.",
  receiptButton: "Quittung speichern",
  receiptWords: "Die Quittung beweist, was der Server unterschrieben hat. Sie sagt nicht, was Sie geantwortet haben.",
  checkButton: "Wurde ich gezählt?",
  checkedNothing: "Es gibt noch kein Ergebnis.",
  withdrawButton: "Meine Antwort zurücknehmen",
  withdrawSure: "Die Antwort endgültig zurücknehmen? Sie können nicht noch einmal antworten.",
  withdrawYes: "Ja, zurücknehmen",
  withdrawNo: "Nein, behalten",
  forgetButton: "Diese Umfrage auf diesem Gerät vergessen",
  forgetWords: "Nach dem Vergessen kann dieses Gerät die Antwort nicht mehr zurücknehmen und nicht mehr prüfen, ob sie gezählt wurde.",
  kept: "Dieses Gerät bewahrt auf, was gesendet wurde, um es noch einmal senden zu können, nicht was Sie geantwortet haben.",

  closedTitle: "Diese Umfrage ist beendet",
  closedWords: "Auf diesem Gerät haben Sie nicht geantwortet, und Antworten werden nicht mehr angenommen.",
  resultTitle: "Ergebnis",
  resultCaption: "Geschätzte Anteile der {included} Personen, die gezählt wurden",
  resultItem: "Antwort",
  resultShare: "Schätzung",
  resultRange: "95-%-Intervall",
  resultWords: "Rauschen schützt alle, darum sind das Schätzungen. In 95 von 100 solchen Umfragen liegt der wahre Anteil einer Antwort unter den gezählten Personen in seinem Intervall. Eine Schätzung kann unter 0 liegen.",
  resultRealized: "Eingehaltener Schutz: epsilon = {epsilon}, delta = {delta}.",
  percent: "{value} %",
  range: "{low} bis {high} %",

  refusalTitle: "Antworten Sie hier nicht",
  refusalNothing: "Es wurde nichts gesendet.",
  refusal_digest: "Der Server zeigt eine andere Umfrage als die, für die Ihre Einladung gemacht wurde. Fragen Sie, wer Sie eingeladen hat.",
  refusal_derived: "Zahlen dieser Umfrage folgen nicht auseinander. Fragen Sie, wer Sie eingeladen hat.",
  refusal_promise: "Der versprochene Schutz folgt nicht aus den Zahlen dieser Umfrage. Fragen Sie, wer Sie eingeladen hat.",
  refusal_malformed: "Was der Server sagt, ist nicht lesbar. Fragen Sie, wer Sie eingeladen hat.",
  refusal_version: "Diese Umfrage hat eine andere Version als diese Seite. Fragen Sie, wer Sie eingeladen hat.",
  refusal_key: "Ein Schlüssel des zweiten Servers ist nicht brauchbar. Fragen Sie, wer Sie eingeladen hat.",
  refusal_topology: "Diese Umfrage braucht mehrere Besuche, bei denen Ihr Gerät anderen hilft. Eine Seite, die jederzeit geschlossen werden kann, kann das nicht versprechen: Nehmen Sie das installierte Programm.",
  refusal_mechanism: "Diese Seite kann das Rauschen dieser Umfrage nicht ziehen: Nehmen Sie das installierte Programm.",
  refusal_code: "Das ist kein Einladungscode. Kopieren Sie ihn noch einmal aus Ihrer Einladung.",
  refusal_mistyped: "In diesem Code ist ein Fehler. Kopieren Sie ihn noch einmal aus Ihrer Einladung.",
  refusal_unknown: "Der Server kennt diese Umfrage nicht. Ist das die Adresse aus Ihrer Einladung?",
  refusal_unreachable: "Der Server ist nicht erreichbar. Versuchen Sie es später noch einmal.",
  refusal_browser: "Dieser Browser ist zu alt oder erlaubt nicht, was Ihre Antwort geheim hält. Chrome und Edge ab 137, Firefox ab 130 und Safari ab 17 können es.",
  refusal_insecure: "Diese Adresse ist nicht geschützt (sie beginnt mit http:). Ohne Schutz kann ein Browser Ihre Antwort nicht geheim halten: Bitten Sie um einen Link, der mit https: beginnt.",
  refusal_storage: "Dieser Browser lässt die Seite nichts aufbewahren. In einem privaten Fenster oder mit gesperrtem Speicher können Sie nicht sicher antworten.",
  refusal_other: "Etwas ist schiefgegangen: {words}",
  again: "Noch einmal versuchen",
};

export const LANGUAGES = { en, de };

let current = "en";

/** The language that the page speaks now. */
export const language = () => current;

/** Speak the first of these languages that the page knows. */
export function speak(wanted) {
  const known = wanted.map((each) => each.slice(0, 2)).find((each) => Object.hasOwn(LANGUAGES, each));
  current = known ?? "en";
  document.documentElement.lang = current;
  document.documentElement.dir = LANGUAGES[current].direction;
}

/** A sentence in the current language; a number and its % stay on one line. */
export function say(name, values = {}) {
  const filled = LANGUAGES[current][name].replace(/\{(\w+)\}/g, (_, key) => String(values[key]));
  return filled.replaceAll(" %", "\u00a0%");
}

/** A number as the current language writes it. */
export const written = (value, options = {}) => new Intl.NumberFormat(current, options).format(value);
