// Every text of the participant's page, in every language. {name} is filled in. Write whole
// sentences: the order of words differs between languages. Participants know the servers by their
// operators' names. Those about privacy levels are in level_strings.js.

import { de as germanLevels, en as englishLevels } from "./level_strings.js";

const en = {
  language: "English",
  direction: "ltr",
  title: "A survey that keeps your answer private",
  loading: "Opening your invitation …",
  chooseLanguage: "Language",

  // without an invitation
  pasteTitle: "Your invitation",
  pasteText: "Open the link in your invitation, or paste the code from it here.",
  pasteLabel: "Invitation code or link",
  pasteButton: "Open",
  earlierTitle: "Answered on this device",
  earlierButton: "Show: {question}",

  // who asks
  asks: "{owner} asks",
  purpose: "Why: {purpose}",
  contact: "Questions? {contact}",
  noName: "Somebody (no name given)",
  noOperator: "an unnamed operator",
  organizations:
    "Two organizations count the answers together: {s1} and {s2}. Neither of them can read your " +
    "answer on its own.",
  sameOrganization:
    "Both servers are run by {s1}, with nobody to check on them. Answer only if you trust {s1} " +
    "not to read your answer.",
  invited:
    "Up to {n} people are invited. A result is published only if at least {minimum} of them are " +
    "counted.",
  questionLanguage: "Language of the questions",
  choose: "Choose one answer",
  chooseAny: "Choose all that apply",
  chooseAtMost: "Choose at most {limit}",
  chosenCount: "{count} of at most {limit} chosen",
  chosenAll: "{count} of at most {limit} chosen: remove one to choose another",
  chooseBoth: "Choose one answer to each; they are counted together",
  chooseOption: "Please choose",
  tableTitle: "Two questions",
  numberHint: "A number from {low} to {high}",
  numberStepHint: "A number from {low} to {high}; it is rounded to steps of {step}",
  preferNotToSay: "prefer not to say",
  doesNotApply: "does not apply",
  noneOfThese: "none of these",
  noAnswer: "no answer",
  band: "{low} to below {high}",
  lastBand: "{low} to {high}",
  questionAppeared: "Another question has appeared below.",
  continue: "Continue",
  chooseFirst: "Please choose an answer first.",
  chooseSomeFirst: "Please choose at least one, or say that none of these is right for you.",
  chooseBothFirst: "Please choose an answer to both first.",
  numberFirst: "Please enter a number from {low} to {high} first.",

  // promise
  promiseTitle: "How your answer is protected",
  promise:
    "Imagine somebody who thinks that two answers are equally likely to be yours. Even after " +
    "seeing the result, this person can be at most {sure} % sure which one you chose.",
  promiseSingle: "About a single answer of yours, this person can be at most {sure} % sure.",
  promiseSingleSame: "About a single answer of yours, this person cannot be any surer.",
  promiseWeak: "That is hardly any protection. Answer only if anybody may know your answer.",
  promiseServers:
    "This also holds against each of the two organizations, even if up to {phi} other " +
    "participants tell everything they know.",
  promiseOneServerShares:
    "This holds even if up to {phi} other participants tell everything they know. It does not hold " +
    "against {s1}, which runs both servers and could combine the shares.",
  promiseServerNoise:
    "This also holds against each of the two organizations, even if other participants tell it " +
    "everything they know, as long as the other organization adds its random noise and keeps it " +
    "secret: {s2} protects you from {s1}, and {s1} protects you from {s2}. Against everybody " +
    "else it is enough that one of them does.",
  promiseOneServer:
    "This holds even if other participants tell everything they know. It does not hold against " +
    "{s1}, which runs both servers and knows all of the noise.",
  promiseDelta: "With a probability of at most 1 in {delta}, more than that could be learned.",
  promiseFloor:
    "This holds only if at least {floor} other people give each of the answers. The owner of the " +
    "survey expects that; nobody can check it here.",
  promiseNumbers:
    "For experts: differential privacy with epsilon = {epsilon} and delta = {delta}, replacing " +
    "one person's answer.",
  promiseTwice: "Every further survey among the same people can reveal a little more.",

  // operators
  operatorsTitle: "Who runs the servers",
  operatorsSigned:
    "The operator of each server has signed this survey with its key. These are the names that " +
    "they state, and the fingerprints of their keys:",
  operatorsCompare:
    "Anybody can state any name. If it matters to you, compare each fingerprint with the one that " +
    "the organization publishes itself, for example on its own website.",

  // checked
  checkedTitle: "What this page has checked",
  checkedDigest: "This is exactly the survey that your invitation was made for.",
  checkedOperators:
    "The holders of the two keys above run the servers of this survey: the person who asks could " +
    "not simply write down other names.",
  checkedTable:
    "The random noise that hides your answer is drawn on your device, as the survey promises.",
  checkedServerTable:
    "The random noise that both organizations promise to add gives this protection. Whether they " +
    "really add it cannot be checked from here.",
  checkedCoins:
    "The number of random coins that hide your answer is large enough for this protection. " +
    "Whether they are added correctly cannot be checked from here.",
  checkedProof:
    "Your answer is sent with a proof that it is exactly one vote. The two organizations check " +
    "the proof together, and neither sees your vote.",
  checkedPromise:
    "The survey's numbers really give the protection that it promises, whether {minimum} or {n} " +
    "people are counted.",
  checkedNot:
    "No page can check that real people are invited, that the two organizations do not work " +
    "together, and that they count correctly.",

  // not covered
  uncoveredTitle: "What is not protected",
  uncoveredBoth: "If both organizations worked together, they could read your answer.",
  uncoveredPage:
    "This page comes from {s1}. If it sent you a different program, that program could read your " +
    "answer, and a hash that it shows itself proves nothing. To be sure, use the installed " +
    "program (faircount answer) or a page from another place, if your invitation names one.",
  uncoveredPageElsewhere:
    "This page comes from {host}, not from {s1}, which cannot change it. Whoever runs {host} " +
    "could. The hash of its files should be the one on your invitation; the installed program " +
    "(faircount answer) needs no page.",
  uncoveredPart: "{s1} sees that you take part and when, but not what you answer.",
  uncoveredCounts:
    "A dishonest server or dishonest participants could falsify the result without being noticed.",
  uncoveredServers:
    "A dishonest server could falsify the result or leave people out without being noticed. " +
    "Participants cannot: anything but exactly one vote is rejected.",
  uncoveredDevice: "Anybody who can see your screen can see your answer.",

  // confirm
  confirmTitle: "Send this answer?",
  confirmAnswer: "Your answer, which stays on this device:",
  confirmBytes: "Show what leaves this device",
  confirmShare: "For {s1}: random-looking numbers ({bytes} bytes)",
  confirmEncryptedShare:
    "For {s2}: an encrypted message, which {s1} passes on but cannot read ({bytes} bytes)",
  confirmText:
    "Random noise was added to your answer, and the sum was split into two shares. Neither share " +
    "alone reveals your answer.",
  confirmProven:
    "A proof that your answer is exactly one vote was added, and everything was split into two " +
    "shares. Neither share alone reveals your answer.",
  confirmOnce:
    "You can answer only once. Until the survey closes, you can withdraw your answer on this " +
    "device, and nobody can on another one.",
  confirmOwner:
    "Who made the invitations has a copy of yours: {owner} could have answered with it before " +
    "you (then you will be told), and could have invited people who do not exist.",
  send: "Send",
  back: "Back",

  // participation status
  waitingTitle: "Saved on this device, not sent yet",
  waitingText:
    "The server cannot be reached right now. This page keeps trying. You can also close it and " +
    "come back later; your answer stays saved.",
  earlyText: "The survey is not open yet. This page keeps trying; you can also come back later.",
  sendingTitle: "Sending …",
  sentTitle: "Thank you! Your answer has arrived",
  sentText:
    "The server confirmed that it saved your response, and your device has verified the " +
    "confirmation.",
  tooLateText: "It was too late to withdraw your answer: it is already being counted.",
  refusedTitle: "The server did not accept your answer",
  refusedConflict:
    "Another answer was sent from this device before. The first one counts.",
  refusedUsed:
    "Somebody else has answered with your invitation, unless you did so on another device. The " +
    "first answer counts, and only the device that sent it can withdraw it. If it was not you, " +
    "please tell the contact of the survey: whoever made the invitations could have used yours.",
  refusedReplaced:
    "Your invitation was replaced by another one. If you have not asked for that, somebody else " +
    "may answer in your place: please ask the contact of the survey.",
  noticeOtherDevice:
    "Another device has tried to use your invitation and was refused. Your answer has not " +
    "changed. If that was not you, please tell the contact of the survey: whoever made the " +
    "invitations has a copy of yours.",
  noticeReissue:
    "The owner of the survey has tried to replace your invitation and was refused, because you " +
    "have answered with it.",
  refusedLate: "The survey is closed.",
  refusedUnknown: "The server does not know this invitation.",
  refusedMalformed: "The server could not read what was sent.",
  refusedUnsigned: "What was sent does not match this invitation.",
  refusedFull: "The survey already has as many answers as it can take.",
  refusedDigest: "What was sent belongs to another version of this survey.",
  refusedOther: "The server says:",
  withdrawingTitle: "Withdrawing your answer …",
  withdrawingText: "The server cannot be reached right now. This page keeps trying.",
  withdrawnTitle: "Your answer is withdrawn",
  withdrawnText:
    "The server confirmed that your answer will not be counted. This cannot be undone.",
  countedTitle: "Your answer was counted",
  countedText:
    "The result is published, and your device has verified the proof that your answer is part of " +
    "it.",
  uncountedTitle: "Your answer was not counted",
  uncountedText:
    "The result was published without your answer. If you have a receipt, it proves that the " +
    "server had accepted your answer.",
  withdrawalLost:
    "You withdrew your answer in time, and the server confirmed it. Your answer was counted all " +
    "the same, because the server lost your withdrawal. The receipt proves this: please tell the " +
    "contact of the survey.",
  endedTitle: "The survey ended without a result",
  endedText: "The reason:",
  ending_owner: "The owner of the survey ended it.",
  ending_too_few_responses: "Too few people answered: {responses} did, and {minimum} are needed.",
  ending_too_few_enrolled: "Too few people signed up: {enrolled} did, and {minimum} are needed.",
  ending_too_few_left: "Too few people stayed until the end: {left} did, and {minimum} are needed.",
  ending_too_few_readable:
    "Too few answers could be decrypted and added up: {readable} could, and {minimum} are needed.",
  ending_over_budget: "These people have used up their privacy budget in earlier surveys.",
  ending_aggregator_restored: "{s2} had to restore its server from a backup while the survey was running.",
  ending_coordinator_restored:
    "{s1} had to restore its server from a backup while the survey was running, and could not " +
    "continue.",
  ending_reports_lost:
    "Answers were damaged or lost after it had been decided which ones are counted.",
  ending_attempts_used: "People were missing in every one of {attempts} attempts to count.",
  ending_key_lost: "The key of a participant who dropped out could not be recovered.",
  ending_no_substitute: "Nobody was left to replace a participant who dropped out.",
  ending_not_invited: "None of the people who signed up had been invited.",
  ending_corrupt_sum: "The sum was outside the range that honest answers can give.",
  ending_aggregator_refused: "{s2} refused the list of answers (reason {reason}).",
  ending_aggregator_contradiction: "{s1} reports that {s2} contradicted itself.",
  ending_coordinator_contradiction: "{s2} found that {s1} contradicted itself.",
  ending_aggregator_secret_lost: "{s2} has lost a secret value to which it had committed.",
  ending_operator: "The operator of one of the servers stopped the survey.",
  ending_unknown: "The servers gave a reason that this page does not know.",
  unverified:
    "The server sent something that it could not prove (number of times: {times}). This page " +
    "ignored it. If it happens again, please tell the contact of the survey.",
  progressTitle: "Progress",
  progress: "{responses} of {invited} people have answered.",
  progressClosed: "The answers are being counted.",
  closes: "The survey closes on {when}.",
  receiptButton: "Save receipt",
  receiptText: "The receipt proves what the server confirmed. It does not contain your answer.",
  checkButton: "Was my answer counted?",
  checkedNothing: "There is no result yet.",
  withdrawButton: "Withdraw my answer",
  withdrawSure: "Withdraw your answer for good? You cannot answer again.",
  withdrawYes: "Yes, withdraw it",
  withdrawNo: "No, keep it",
  forgetButton: "Remove this survey from this device",
  forgetSure: "Remove this survey and its receipt from this device? This cannot be undone.",
  forgetYes: "Yes, remove it",
  forgetNo: "No, keep it",
  forgetText:
    "If you remove the survey from this device, you can no longer withdraw your answer here or " +
    "check whether it was counted.",
  kept:
    "This device keeps what was sent, so that it can be sent again. It does not keep your answer.",
  keptWithdrawal:
    "This device keeps your withdrawal, so that it can be sent again if the server loses it. It " +
    "does not keep your answer.",

  // result
  closedTitle: "This survey is closed",
  closedText: "You have not answered on this device, and answers are no longer accepted.",
  resultTitle: "Result",
  resultCaption: "Estimated shares among the {included} people who were counted",
  resultAnswered: "Estimated shares among those who answered",
  resultFirst: "Estimated shares of the answers to: {first}",
  resultSecond: "Estimated shares of the answers to: {second}",
  resultOther: "Estimated for the {included} people who were counted",
  mean: "mean",
  meanAnswered: "mean of those who answered",
  median: "median",
  answeredShare: "people who answered",
  resultItem: "Answer",
  resultShare: "Estimate",
  resultRange: "95 % interval",
  resultText:
    "These are estimates, because random noise protects everybody. In 95 of 100 such surveys, " +
    "the true share among the people counted lies in its interval. An estimate can be below 0.",
  resultProven:
    "Answers counted: {included}, each proven to be exactly one vote. Rejected: {refused}.",
  resultUnproven:
    "The answers carry no proof that each is exactly one vote: a manipulated program could have " +
    "counted for more.",
  resultOneOperator:
    "Both servers were run by {s1}, which could have read every answer. The privacy achieved holds " +
    "against everybody else.",
  resultRealized: "Privacy achieved: epsilon = {epsilon}, delta = {delta}.",
  percent: "{value} %",
  range: "{low} to {high} %",
  plainRange: "{low} to {high}",

  // refusals
  refusalTitle: "You cannot answer here",
  refusalNothing: "Nothing was sent.",
  refusal_digest:
    "The server shows a different survey from the one that your invitation was made for. Please " +
    "ask the person who invited you.",
  refusal_operators:
    "The servers have not confirmed who runs them: a signature of their operators is missing, or " +
    "belongs to another name, key or survey. Do not answer, and ask the person who invited you.",
  refusal_derived:
    "The numbers of this survey contradict each other. Please ask the person who invited you.",
  refusal_promise:
    "This survey does not protect your answer as well as it promises. Please ask the person who " +
    "invited you.",
  refusal_malformed:
    "This page cannot read the server's response. Please ask the person who invited you.",
  refusal_version:
    "This survey was made for another version of this page. Please ask the person who invited " +
    "you.",
  refusal_key: "A key of the second server cannot be used. Please ask the person who invited you.",
  refusal_topology:
    "In this survey your device has to come back several times to help others. A web page may be " +
    "closed at any time, so please use the installed program.",
  refusal_mechanism:
    "This page does not support this kind of survey. Please use the installed program.",
  refusal_code: "This is not an invitation code. Please copy it again from your invitation.",
  refusal_mistyped: "This code has a typing mistake. Please copy it again from your invitation.",
  refusal_unknown: "The server does not know this survey. Is this the address in your invitation?",
  refusal_unreachable: "The server cannot be reached. Please try again later.",
  refusal_browser:
    "This browser is too old or blocks the encryption that keeps your answer private. Chrome and " +
    "Edge from version 137, Firefox from 130 and Safari from 17 work.",
  refusal_insecure:
    "This address is not encrypted (it begins with http:), so your answer could be read on the " +
    "way. Ask for a link that begins with https:.",
  refusal_storage:
    "This browser does not let the page save anything. Answering is not safe in a private window " +
    "or with blocked storage.",
  refusal_other: "Something went wrong:",
  again: "Try again",
};

const de = {
  language: "Deutsch",
  direction: "ltr",
  title: "Eine Umfrage, bei der Ihre Antwort geheim bleibt",
  loading: "Ihre Einladung wird geöffnet …",
  chooseLanguage: "Sprache",

  pasteTitle: "Ihre Einladung",
  pasteText: "Öffnen Sie den Link in Ihrer Einladung oder fügen Sie hier den Code daraus ein.",
  pasteLabel: "Einladungscode oder Link",
  pasteButton: "Öffnen",
  earlierTitle: "Auf diesem Gerät beantwortet",
  earlierButton: "Anzeigen: {question}",

  asks: "{owner} fragt",
  purpose: "Wozu: {purpose}",
  contact: "Fragen? {contact}",
  noName: "Jemand (kein Name angegeben)",
  noOperator: "ein ungenannter Betreiber",
  organizations:
    "Zwei Organisationen zählen die Antworten gemeinsam: {s1} und {s2}. Keine von beiden kann " +
    "Ihre Antwort allein lesen.",
  sameOrganization:
    "Beide Server werden von {s1} betrieben, und niemand kontrolliert das. Antworten Sie nur, " +
    "wenn Sie darauf vertrauen, dass {s1} Ihre Antwort nicht liest.",
  invited:
    "Bis zu {n} Personen sind eingeladen. Ein Ergebnis wird nur veröffentlicht, wenn mindestens " +
    "{minimum} von ihnen gezählt werden.",
  questionLanguage: "Sprache der Fragen",
  choose: "Wählen Sie eine Antwort",
  chooseAny: "Wählen Sie alles, was zutrifft",
  chooseAtMost: "Wählen Sie höchstens {limit}",
  chosenCount: "{count} von höchstens {limit} gewählt",
  chosenAll:
    "{count} von höchstens {limit} gewählt: Entfernen Sie etwas, um etwas anderes zu wählen",
  chooseBoth: "Wählen Sie zu jeder eine Antwort; sie werden zusammen gezählt",
  chooseOption: "Bitte wählen",
  tableTitle: "Zwei Fragen",
  numberHint: "Eine Zahl von {low} bis {high}",
  numberStepHint: "Eine Zahl von {low} bis {high}; sie wird auf Schritte von {step} gerundet",
  preferNotToSay: "keine Angabe",
  doesNotApply: "trifft nicht zu",
  noneOfThese: "nichts davon",
  noAnswer: "keine Antwort",
  band: "{low} bis unter {high}",
  lastBand: "{low} bis {high}",
  questionAppeared: "Weiter unten ist eine weitere Frage erschienen.",
  continue: "Weiter",
  chooseFirst: "Bitte wählen Sie zuerst eine Antwort.",
  chooseSomeFirst: "Bitte wählen Sie mindestens eines, oder dass nichts davon auf Sie zutrifft.",
  chooseBothFirst: "Bitte wählen Sie zuerst zu beiden eine Antwort.",
  numberFirst: "Bitte geben Sie zuerst eine Zahl von {low} bis {high} ein.",

  promiseTitle: "Wie Ihre Antwort geschützt ist",
  promise:
    "Angenommen, jemand hält zwei Antworten bei Ihnen für gleich wahrscheinlich. Selbst wer das " +
    "Ergebnis kennt, kann dann höchstens zu {sure} % sicher sein, welche der beiden Sie gewählt " +
    "haben.",
  promiseSingle:
    "Über eine einzelne Ihrer Antworten kann diese Person höchstens zu {sure} % sicher sein.",
  promiseSingleSame: "Über eine einzelne Ihrer Antworten kann diese Person nicht sicherer sein.",
  promiseWeak: "Das ist kaum ein Schutz. Antworten Sie nur, wenn jeder Ihre Antwort wissen darf.",
  promiseServers:
    "Das gilt auch gegenüber jeder der beiden Organisationen, selbst wenn bis zu {phi} andere " +
    "Teilnehmende alles verraten, was sie wissen.",
  promiseOneServerShares:
    "Das gilt, selbst wenn bis zu {phi} andere Teilnehmende alles verraten, was sie wissen. Es gilt " +
    "nicht gegenüber {s1}: Dort laufen beide Server, und die Anteile ließen sich zusammenfügen.",
  promiseServerNoise:
    "Das gilt auch gegenüber jeder der beiden Organisationen, selbst wenn andere Teilnehmende " +
    "ihr alles verraten, was sie wissen. Voraussetzung ist, dass die jeweils andere Organisation " +
    "ihr Zufallsrauschen hinzufügt und geheim hält: {s2} schützt Sie vor {s1}, und {s1} schützt " +
    "Sie vor {s2}. Gegenüber allen anderen genügt es, dass eine von beiden das tut.",
  promiseOneServer:
    "Das gilt, selbst wenn andere Teilnehmende alles verraten, was sie wissen. Es gilt nicht " +
    "gegenüber {s1}: Dort laufen beide Server, und dort ist das ganze Rauschen bekannt.",
  promiseDelta:
    "Mit einer Wahrscheinlichkeit von höchstens 1 zu {delta} könnte mehr zu erfahren sein.",
  promiseFloor:
    "Das gilt nur, wenn jede Antwort von mindestens {floor} anderen Personen gegeben wird. Davon " +
    "geht aus, wer die Umfrage macht; prüfen lässt es sich hier nicht.",
  promiseNumbers:
    "Für Fachleute: Differential Privacy mit epsilon = {epsilon} und delta = {delta}, wenn die " +
    "Antwort einer Person ersetzt wird.",
  promiseTwice: "Jede weitere Umfrage unter denselben Personen kann ein wenig mehr verraten.",

  operatorsTitle: "Wer die Server betreibt",
  operatorsSigned:
    "Der Betreiber jedes Servers hat diese Umfrage mit seinem Schlüssel unterschrieben. Das sind " +
    "die Namen, die sie angeben, und die Fingerabdrücke ihrer Schlüssel:",
  operatorsCompare:
    "Jeder kann jeden Namen angeben. Wenn es Ihnen wichtig ist, vergleichen Sie jeden " +
    "Fingerabdruck mit dem, den die Organisation selbst veröffentlicht, zum Beispiel auf ihrer " +
    "eigenen Website.",

  checkedTitle: "Was diese Seite geprüft hat",
  checkedDigest: "Das ist genau die Umfrage, für die Ihre Einladung gemacht wurde.",
  checkedOperators:
    "Die Inhaber der beiden Schlüssel oben betreiben die Server dieser Umfrage: Wer fragt, konnte " +
    "nicht einfach andere Namen hinschreiben.",
  checkedTable:
    "Das Zufallsrauschen, das Ihre Antwort verbirgt, wird auf Ihrem Gerät gezogen, wie die " +
    "Umfrage es verspricht.",
  checkedServerTable:
    "Das Zufallsrauschen, das beide Organisationen hinzufügen wollen, ergibt diesen Schutz. Ob " +
    "sie es wirklich hinzufügen, lässt sich von hier aus nicht prüfen.",
  checkedCoins:
    "Die Zahl der Zufallsmünzen, die Ihre Antwort verbergen, ist groß genug für diesen Schutz. " +
    "Ob sie richtig hinzugefügt werden, lässt sich von hier aus nicht prüfen.",
  checkedProof:
    "Ihre Antwort wird mit einem Beweis gesendet, dass sie genau eine Stimme ist. Die beiden " +
    "Organisationen prüfen ihn gemeinsam, und keine sieht Ihre Stimme.",
  checkedPromise:
    "Die Zahlen der Umfrage ergeben wirklich den Schutz, den sie verspricht, ob nun {minimum} " +
    "oder {n} Personen gezählt werden.",
  checkedNot:
    "Keine Seite kann prüfen, dass echte Personen eingeladen sind, dass die beiden " +
    "Organisationen nicht zusammenarbeiten und dass sie richtig zählen.",

  uncoveredTitle: "Was nicht geschützt ist",
  uncoveredBoth: "Würden beide Organisationen zusammenarbeiten, könnten sie Ihre Antwort lesen.",
  uncoveredPage:
    "Diese Seite kommt von {s1}. Würde dort ein anderes Programm verschickt, könnte es Ihre " +
    "Antwort lesen, und eine Prüfsumme, die dieselbe Stelle anzeigt, beweist nichts. Um " +
    "sicherzugehen, verwenden Sie das installierte Programm (faircount answer) oder eine Seite " +
    "von anderer Stelle, wenn Ihre Einladung eine nennt.",
  uncoveredPageElsewhere:
    "Diese Seite kommt von {host} und nicht von {s1}, wo man sie nicht ändern kann. Wer {host} " +
    "betreibt, könnte es. Die Prüfsumme ihrer Dateien sollte die auf Ihrer Einladung sein; das " +
    "installierte Programm (faircount answer) braucht keine Seite.",
  uncoveredPart: "{s1} sieht, dass und wann Sie teilnehmen, aber nicht, was Sie antworten.",
  uncoveredCounts:
    "Ein unehrlicher Server oder unehrliche Teilnehmende könnten das Ergebnis unbemerkt " +
    "verfälschen.",
  uncoveredServers:
    "Ein unehrlicher Server könnte das Ergebnis unbemerkt verfälschen oder Personen auslassen. " +
    "Teilnehmende können das nicht: Was nicht genau eine Stimme ist, wird abgewiesen.",
  uncoveredDevice: "Wer Ihren Bildschirm sieht, sieht auch Ihre Antwort.",

  confirmTitle: "Diese Antwort senden?",
  confirmAnswer: "Ihre Antwort, die auf diesem Gerät bleibt:",
  confirmBytes: "Zeigen, was dieses Gerät verlässt",
  confirmShare: "Für {s1}: zufällig aussehende Zahlen ({bytes} Bytes)",
  confirmEncryptedShare:
    "Für {s2}: eine verschlüsselte Nachricht, die {s1} weiterleitet, aber nicht lesen kann " +
    "({bytes} Bytes)",
  confirmText:
    "Zu Ihrer Antwort kam Zufallsrauschen hinzu, und die Summe wurde in zwei Teile zerlegt. " +
    "Keiner der beiden Teile verrät allein Ihre Antwort.",
  confirmProven:
    "Dazu kam ein Beweis, dass Ihre Antwort genau eine Stimme ist, und alles wurde in zwei Teile " +
    "zerlegt. Keiner der beiden Teile verrät allein Ihre Antwort.",
  confirmOnce:
    "Sie können nur einmal antworten. Bis zum Ende der Umfrage können Sie Ihre Antwort auf diesem " +
    "Gerät zurückziehen, und niemand auf einem anderen.",
  confirmOwner:
    "Wer die Einladungen gemacht hat, hat auch von Ihrer eine Kopie: {owner} könnte damit schon " +
    "vor Ihnen geantwortet haben (dann erfahren Sie es) und Personen eingeladen haben, die es " +
    "nicht gibt.",
  send: "Absenden",
  back: "Zurück",

  waitingTitle: "Auf diesem Gerät gespeichert, noch nicht gesendet",
  waitingText:
    "Der Server ist gerade nicht erreichbar. Diese Seite versucht es weiter. Sie können sie auch " +
    "schließen und später wiederkommen; Ihre Antwort bleibt gespeichert.",
  earlyText:
    "Die Umfrage ist noch nicht geöffnet. Diese Seite versucht es weiter; Sie können auch später " +
    "wiederkommen.",
  sendingTitle: "Wird gesendet …",
  sentTitle: "Danke! Ihre Antwort ist angekommen",
  sentText:
    "Der Server hat bestätigt, dass er Ihre Antwort gespeichert hat, und Ihr Gerät hat die " +
    "Bestätigung geprüft.",
  tooLateText: "Zum Zurückziehen war es zu spät: Ihre Antwort wird schon gezählt.",
  refusedTitle: "Der Server hat Ihre Antwort nicht angenommen",
  refusedConflict:
    "Von diesem Gerät wurde schon eine andere Antwort gesendet. Die erste zählt.",
  refusedUsed:
    "Jemand anderes hat mit Ihrer Einladung geantwortet, oder Sie selbst auf einem anderen Gerät. " +
    "Die erste Antwort zählt, und nur das Gerät, das sie gesendet hat, kann sie zurückziehen. " +
    "Wenn Sie es nicht waren, sagen Sie es bitte der Kontaktstelle der Umfrage: Wer die " +
    "Einladungen gemacht hat, könnte Ihre verwendet haben.",
  refusedReplaced:
    "Ihre Einladung wurde durch eine andere ersetzt. Wenn Sie nicht darum gebeten haben, könnte " +
    "jemand anderes an Ihrer Stelle antworten: Bitte fragen Sie die Kontaktstelle der Umfrage.",
  noticeOtherDevice:
    "Ein anderes Gerät hat versucht, Ihre Einladung zu verwenden, und wurde abgewiesen. Ihre " +
    "Antwort ist unverändert. Wenn Sie das nicht waren, sagen Sie es bitte der Kontaktstelle der " +
    "Umfrage: Wer die Einladungen gemacht hat, hat eine Kopie von Ihrer.",
  noticeReissue:
    "Wer die Umfrage macht, hat versucht, Ihre Einladung zu ersetzen, und wurde abgewiesen, weil " +
    "Sie damit geantwortet haben.",
  refusedLate: "Die Umfrage ist beendet.",
  refusedUnknown: "Der Server kennt diese Einladung nicht.",
  refusedMalformed: "Der Server konnte nicht lesen, was gesendet wurde.",
  refusedUnsigned: "Was gesendet wurde, passt nicht zu dieser Einladung.",
  refusedFull: "Die Umfrage hat schon so viele Antworten, wie sie annehmen kann.",
  refusedDigest: "Was gesendet wurde, gehört zu einer anderen Fassung dieser Umfrage.",
  refusedOther: "Der Server sagt (englisch):",
  withdrawingTitle: "Ihre Antwort wird zurückgezogen …",
  withdrawingText: "Der Server ist gerade nicht erreichbar. Diese Seite versucht es weiter.",
  withdrawnTitle: "Ihre Antwort ist zurückgezogen",
  withdrawnText:
    "Der Server hat bestätigt, dass Ihre Antwort nicht gezählt wird. Das lässt sich nicht " +
    "rückgängig machen.",
  countedTitle: "Ihre Antwort wurde gezählt",
  countedText:
    "Das Ergebnis ist veröffentlicht, und Ihr Gerät hat den Beweis geprüft, dass Ihre Antwort " +
    "darin enthalten ist.",
  uncountedTitle: "Ihre Antwort wurde nicht gezählt",
  uncountedText:
    "Das Ergebnis wurde ohne Ihre Antwort veröffentlicht. Wenn Sie eine Quittung haben, beweist " +
    "sie, dass der Server Ihre Antwort angenommen hatte.",
  withdrawalLost:
    "Sie hatten Ihre Antwort rechtzeitig zurückgezogen, und der Server hatte das bestätigt. " +
    "Trotzdem wurde sie gezählt, weil der Server den Widerruf verloren hat. Die Quittung beweist " +
    "das: Bitte sagen Sie es der Kontaktstelle der Umfrage.",
  endedTitle: "Die Umfrage endete ohne Ergebnis",
  endedText: "Der Grund:",
  ending_owner: "Wer die Umfrage macht, hat sie beendet.",
  ending_too_few_responses:
    "Zu wenige haben geantwortet: {responses} Personen, und {minimum} sind nötig.",
  ending_too_few_enrolled:
    "Zu wenige haben sich angemeldet: {enrolled} Personen, und {minimum} sind nötig.",
  ending_too_few_left:
    "Zu wenige sind bis zum Ende geblieben: {left} Personen, und {minimum} sind nötig.",
  ending_too_few_readable:
    "Zu wenige Antworten ließen sich entschlüsseln und zusammenzählen: {readable}, und {minimum} " +
    "sind nötig.",
  ending_over_budget:
    "Das Privatheitsbudget dieser Personen ist durch frühere Umfragen aufgebraucht.",
  ending_aggregator_restored:
    "{s2} musste den eigenen Server während der Umfrage aus einer Sicherung wiederherstellen.",
  ending_coordinator_restored:
    "{s1} musste den eigenen Server während der Umfrage aus einer Sicherung wiederherstellen und " +
    "konnte nicht fortfahren.",
  ending_reports_lost:
    "Antworten wurden beschädigt oder gingen verloren, nachdem feststand, welche gezählt werden.",
  ending_attempts_used: "Bei allen {attempts} Versuchen zu zählen fehlten Teilnehmende.",
  ending_key_lost: "Der Schlüssel einer ausgeschiedenen Person ließ sich nicht wiederherstellen.",
  ending_no_substitute: "Niemand war übrig, um für eine ausgeschiedene Person einzuspringen.",
  ending_not_invited: "Von den Angemeldeten war niemand eingeladen.",
  ending_corrupt_sum: "Die Summe lag außerhalb dessen, was ehrliche Antworten ergeben können.",
  ending_aggregator_refused: "{s2} hat die Liste der Antworten abgelehnt (Grund {reason}).",
  ending_aggregator_contradiction: "{s1} meldet einen Widerspruch in den Angaben von {s2}.",
  ending_coordinator_contradiction: "{s2} hat einen Widerspruch in den Angaben von {s1} gefunden.",
  ending_aggregator_secret_lost: "{s2} hat einen geheimen Wert verloren, auf den es sich festgelegt hatte.",
  ending_operator: "Der Betreiber eines der Server hat die Umfrage angehalten.",
  ending_unknown: "Die Server haben einen Grund genannt, den diese Seite nicht kennt.",
  unverified:
    "Der Server hat etwas gesendet, das er nicht beweisen konnte (so oft: {times}). Diese Seite " +
    "hat es nicht beachtet. Wenn es wieder vorkommt, sagen Sie es bitte der Kontaktstelle der " +
    "Umfrage.",
  progressTitle: "Stand",
  progress: "{responses} von {invited} Personen haben geantwortet.",
  progressClosed: "Die Antworten werden gezählt.",
  closes: "Die Umfrage endet am {when}.",
  receiptButton: "Quittung speichern",
  receiptText:
    "Die Quittung beweist, was der Server bestätigt hat. Ihre Antwort steht nicht darin.",
  checkButton: "Wurde meine Antwort gezählt?",
  checkedNothing: "Es gibt noch kein Ergebnis.",
  withdrawButton: "Meine Antwort zurückziehen",
  withdrawSure: "Die Antwort endgültig zurückziehen? Sie können nicht noch einmal antworten.",
  withdrawYes: "Ja, zurückziehen",
  withdrawNo: "Nein, behalten",
  forgetButton: "Diese Umfrage von diesem Gerät entfernen",
  forgetSure:
    "Diese Umfrage und ihre Quittung von diesem Gerät entfernen? Das lässt sich nicht rückgängig " +
    "machen.",
  forgetYes: "Ja, entfernen",
  forgetNo: "Nein, behalten",
  forgetText:
    "Wenn Sie die Umfrage entfernen, können Sie Ihre Antwort hier nicht mehr zurückziehen und " +
    "nicht mehr prüfen, ob sie gezählt wurde.",
  kept:
    "Dieses Gerät bewahrt auf, was gesendet wurde, um es noch einmal senden zu können. Ihre " +
    "Antwort selbst bewahrt es nicht auf.",
  keptWithdrawal:
    "Dieses Gerät bewahrt auf, dass Sie Ihre Antwort zurückgezogen haben, um es noch einmal zu " +
    "senden, falls der Server es verliert. Ihre Antwort selbst bewahrt es nicht auf.",

  closedTitle: "Diese Umfrage ist beendet",
  closedText:
    "Auf diesem Gerät haben Sie nicht geantwortet, und Antworten werden nicht mehr angenommen.",
  resultTitle: "Ergebnis",
  resultCaption: "Geschätzte Anteile unter den {included} gezählten Personen",
  resultAnswered: "Geschätzte Anteile unter denen, die geantwortet haben",
  resultFirst: "Geschätzte Anteile der Antworten auf: {first}",
  resultSecond: "Geschätzte Anteile der Antworten auf: {second}",
  resultOther: "Geschätzt für die {included} gezählten Personen",
  mean: "Mittelwert",
  meanAnswered: "Mittelwert unter denen, die geantwortet haben",
  median: "Median",
  answeredShare: "Personen, die geantwortet haben",
  resultItem: "Antwort",
  resultShare: "Schätzung",
  resultRange: "95-%-Intervall",
  resultText:
    "Das sind Schätzungen, denn Zufallsrauschen schützt alle. In 95 von 100 solchen Umfragen " +
    "liegt der wahre Anteil unter den gezählten Personen im Intervall. Eine Schätzung kann unter " +
    "0 liegen.",
  resultProven:
    "Gezählte Antworten: {included}, jede nachweislich genau eine Stimme. Abgewiesen: {refused}.",
  resultUnproven:
    "Bei diesen Antworten ist nicht bewiesen, dass jede genau eine Stimme ist: Ein manipuliertes " +
    "Programm könnte mehrfach gezählt haben.",
  resultOneOperator:
    "Beide Server wurden von {s1} betrieben; dort hätte jede Antwort gelesen werden können. Der " +
    "erreichte Schutz gilt gegenüber allen anderen.",
  resultRealized: "Erreichter Schutz: epsilon = {epsilon}, delta = {delta}.",
  percent: "{value} %",
  range: "{low} bis {high} %",
  plainRange: "{low} bis {high}",

  refusalTitle: "Sie können hier nicht antworten",
  refusalNothing: "Es wurde nichts gesendet.",
  refusal_digest:
    "Der Server zeigt eine andere Umfrage als die, für die Ihre Einladung gemacht wurde. Bitte " +
    "fragen Sie nach, wo Sie die Einladung bekommen haben.",
  refusal_operators:
    "Die Server haben nicht bestätigt, wer sie betreibt: Eine Unterschrift ihrer Betreiber fehlt " +
    "oder gehört zu einem anderen Namen, Schlüssel oder einer anderen Umfrage. Antworten Sie " +
    "nicht, und fragen Sie die Person, die Sie eingeladen hat.",
  refusal_derived:
    "Die Zahlen dieser Umfrage widersprechen einander. Bitte fragen Sie nach, wo Sie die " +
    "Einladung bekommen haben.",
  refusal_promise:
    "Diese Umfrage schützt Ihre Antwort schlechter, als sie verspricht. Bitte fragen Sie nach, " +
    "wo Sie die Einladung bekommen haben.",
  refusal_malformed:
    "Diese Seite kann die Antwort des Servers nicht lesen. Bitte fragen Sie nach, wo Sie die " +
    "Einladung bekommen haben.",
  refusal_version:
    "Diese Umfrage wurde für eine andere Version dieser Seite gemacht. Bitte fragen Sie nach, wo " +
    "Sie die Einladung bekommen haben.",
  refusal_key:
    "Ein Schlüssel des zweiten Servers ist nicht brauchbar. Bitte fragen Sie nach, wo Sie die " +
    "Einladung bekommen haben.",
  refusal_topology:
    "Bei dieser Umfrage muss Ihr Gerät mehrmals wiederkommen, um anderen zu helfen. Eine " +
    "Webseite kann jederzeit geschlossen werden; bitte nehmen Sie das installierte Programm.",
  refusal_mechanism:
    "Diese Seite unterstützt diese Art von Umfrage nicht. Bitte nehmen Sie das installierte " +
    "Programm.",
  refusal_code:
    "Das ist kein Einladungscode. Bitte kopieren Sie ihn noch einmal aus Ihrer Einladung.",
  refusal_mistyped:
    "In diesem Code ist ein Tippfehler. Bitte kopieren Sie ihn noch einmal aus Ihrer Einladung.",
  refusal_unknown: "Der Server kennt diese Umfrage nicht. Ist das die Adresse aus Ihrer Einladung?",
  refusal_unreachable:
    "Der Server ist nicht erreichbar. Bitte versuchen Sie es später noch einmal.",
  refusal_browser:
    "Dieser Browser ist zu alt oder blockiert die Verschlüsselung, die Ihre Antwort geheim hält. " +
    "Es funktionieren Chrome und Edge ab Version 137, Firefox ab 130 und Safari ab 17.",
  refusal_insecure:
    "Diese Adresse ist nicht verschlüsselt (sie beginnt mit http:), so dass Ihre Antwort " +
    "unterwegs gelesen werden könnte. Bitten Sie um einen Link, der mit https: beginnt.",
  refusal_storage:
    "Dieser Browser lässt die Seite nichts speichern. In einem privaten Fenster oder bei " +
    "blockiertem Speicher können Sie nicht sicher antworten.",
  refusal_other: "Etwas ist schiefgegangen (englisch):",
  again: "Noch einmal versuchen",
};

export const LANGUAGES = { en: { ...en, ...englishLevels }, de: { ...de, ...germanLevels } };
