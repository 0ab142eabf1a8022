// What the page says in other words when a survey has several questions; the names are those of
// strings.js, and every other sentence is the same for one question and for several.

const en = {
  organizations:
    "Two organizations count the answers together: {s1} and {s2}. Neither of them can read your " +
    "answers on its own.",
  sameOrganization:
    "Both servers are run by {s1}, with nobody to check on them. Answer only if you trust {s1} " +
    "not to read your answers.",
  promiseTitle: "How your answers are protected",
  promise:
    "Imagine somebody who thinks that two ways to answer all these questions are equally likely " +
    "to be yours. Even after seeing the results, this person can be at most {sure} % sure which " +
    "one it is. This covers all your answers together.",
  promiseWeak: "That is hardly any protection. Answer only if anybody may know your answers.",
  promiseNumbers:
    "For experts: differential privacy with epsilon = {epsilon} and delta = {delta}, replacing " +
    "all answers of one person.",
  levelTitle: "How well should your answers be hidden?",
  levelStrongest:
    "Even after seeing the results, nobody can be more than {sure} % sure which of two ways to " +
    "answer all questions is yours. 50 % would be a guess.",
  levelBetween:
    "At most {sure} % sure. Your device tosses a coin: all your answers may be counted a " +
    "second time, which makes the results more exact.",
  levelWeakest:
    "At most {sure} % sure. All your answers are counted a second time, which makes the " +
    "results more exact.",
  levelBoth:
    "Somebody who guesses both your answers and your choice here can be at most {both} % sure.",
  promiseLevels:
    "Imagine somebody who thinks that two ways to answer all these questions are equally likely " +
    "to be yours. How sure this person can be after seeing the results depends on the level that " +
    "you choose:",
  promiseLevel:
    "{name}: at most {sure} % sure which one it is, and at most {both} % sure of your answers and " +
    "your level together.",
  promiseLevelNumbers:
    "For experts: differential privacy with delta = {delta}, replacing all answers of one person, " +
    "and epsilon = {epsilons}; if the level is replaced, too, {both}.",
  checkedLevels:
    "The coin that decides whether your answers are counted a second time is tossed on your " +
    "device, with the chance that your level allows. Nobody else learns how it fell.",
  checkedServerTable:
    "The random noise that both organizations promise to add to the results of all questions " +
    "gives this protection. Whether they really add it cannot be checked from here.",
  checkedProof:
    "Your answers are sent with a proof that they are one valid questionnaire. The two " +
    "organizations check the proof together, and neither sees your answers.",
  uncoveredBoth: "If both organizations worked together, they could read your answers.",
  uncoveredPage:
    "This page comes from {s1}. If it sent you a different program, that program could read your " +
    "answers, and a hash that it shows itself proves nothing. To be sure, use the installed " +
    "program (faircount answer) or a page from another place, if your invitation names one.",
  uncoveredServers:
    "A dishonest server could falsify the result or leave people out without being noticed. " +
    "Participants cannot: anything but one valid questionnaire is rejected. They can answer a " +
    "question that does not concern them.",
  uncoveredDevice: "Anybody who can see your screen can see your answers.",
  confirmTitle: "Send these answers?",
  confirmAnswer: "Your answers, which stay on this device:",
  confirmProven:
    "A proof that your answers are one valid questionnaire was added, and everything was split " +
    "into two shares. Neither share alone reveals any of your answers.",
  confirmOnce:
    "You can answer only once. Until the survey closes, you can withdraw your answers on this " +
    "device, and nobody can on another one.",
  waitingText:
    "The server cannot be reached right now. This page keeps trying. You can also close it and " +
    "come back later; your answers stay saved.",
  sentTitle: "Thank you! Your answers have arrived",
  sentText:
    "The server confirmed that it saved your answers, and your device has verified the " +
    "confirmation.",
  tooLateText: "It was too late to withdraw your answers: they are already being counted.",
  refusedTitle: "The server did not accept your answers",
  noticeOtherDevice:
    "Another device has tried to use your invitation and was refused. Your answers have not " +
    "changed. If that was not you, please tell the contact of the survey: whoever made the " +
    "invitations has a copy of yours.",
  withdrawingTitle: "Withdrawing your answers …",
  withdrawnTitle: "Your answers are withdrawn",
  withdrawnText:
    "The server confirmed that your answers will not be counted. This cannot be undone.",
  countedTitle: "Your answers were counted",
  countedText:
    "The result is published, and your device has verified the proof that your answers are part " +
    "of it.",
  uncountedTitle: "Your answers were not counted",
  uncountedText:
    "The result was published without your answers. If you have a receipt, it proves that the " +
    "server had accepted them.",
  withdrawalLost:
    "You withdrew your answers in time, and the server confirmed it. Your answers were counted " +
    "all the same, because the server lost your withdrawal. The receipt proves this: please tell " +
    "the contact of the survey.",
  receiptText: "The receipt proves what the server confirmed. It does not contain your answers.",
  checkButton: "Were my answers counted?",
  withdrawButton: "Withdraw my answers",
  withdrawSure: "Withdraw your answers for good? You cannot answer again.",
  withdrawYes: "Yes, withdraw them",
  withdrawNo: "No, keep them",
  forgetText:
    "If you remove the survey from this device, you can no longer withdraw your answers here or " +
    "check whether they were counted.",
  kept:
    "This device keeps what was sent, so that it can be sent again. It does not keep your answers.",
  keptWithdrawal:
    "This device keeps your withdrawal, so that it can be sent again if the server loses it. It " +
    "does not keep your answers.",
  resultTitle: "Results",
  resultText:
    "These are estimates, because random noise protects everybody. In 95 of 100 such surveys, " +
    "the true number for the people counted lies in its interval. An estimated share can be " +
    "below 0.",
  resultBase: "The tables above count everybody once. They hold whatever people chose.",
  resultProven:
    "People counted: {included}, each with one valid questionnaire, as was proven. Rejected: " +
    "{refused}.",
};

const de = {
  organizations:
    "Zwei Organisationen zählen die Antworten gemeinsam: {s1} und {s2}. Keine von beiden kann " +
    "Ihre Antworten allein lesen.",
  sameOrganization:
    "Beide Server werden von {s1} betrieben, und niemand kontrolliert das. Antworten Sie nur, " +
    "wenn Sie darauf vertrauen, dass {s1} Ihre Antworten nicht liest.",
  promiseTitle: "Wie Ihre Antworten geschützt sind",
  promise:
    "Angenommen, jemand hält es bei Ihnen für gleich wahrscheinlich, dass Sie alle diese Fragen " +
    "auf die eine oder auf eine andere Weise beantwortet haben. Selbst wer die Ergebnisse kennt, " +
    "kann dann höchstens zu {sure} % sicher sein, welche es war. Das gilt für alle Ihre Antworten " +
    "zusammen.",
  promiseWeak: "Das ist kaum ein Schutz. Antworten Sie nur, wenn jeder Ihre Antworten wissen darf.",
  promiseNumbers:
    "Für Fachleute: Differential Privacy mit epsilon = {epsilon} und delta = {delta}, wenn alle " +
    "Antworten einer Person ersetzt werden.",
  levelTitle: "Wie gut sollen Ihre Antworten verborgen sein?",
  levelStrongest:
    "Selbst wer die Ergebnisse kennt, kann nicht mehr als zu {sure} % sicher sein, welche von zwei " +
    "Arten, alle Fragen zu beantworten, Ihre ist. 50 % wären bloßes Raten.",
  levelBetween:
    "Höchstens zu {sure} % sicher. Ihr Gerät wirft eine Münze: Alle Ihre Antworten zählen " +
    "vielleicht ein zweites Mal, und die Ergebnisse werden genauer.",
  levelWeakest:
    "Höchstens zu {sure} % sicher. Alle Ihre Antworten zählen ein zweites Mal, und die " +
    "Ergebnisse werden genauer.",
  levelBoth:
    "Wer Ihre Antworten und Ihre Wahl hier zugleich erraten will, kann höchstens zu {both} % " +
    "sicher sein.",
  promiseLevels:
    "Angenommen, jemand hält es bei Ihnen für gleich wahrscheinlich, dass Sie alle diese Fragen " +
    "auf die eine oder auf eine andere Weise beantwortet haben. Wie sicher sich diese Person mit " +
    "den Ergebnissen sein kann, hängt von der Schutzstufe ab, die Sie wählen:",
  promiseLevel:
    "{name}: höchstens zu {sure} % sicher, auf welche, und höchstens zu {both} % sicher, was " +
    "Antworten und Schutzstufe zugleich angeht.",
  promiseLevelNumbers:
    "Für Fachleute: Differential Privacy mit delta = {delta}, wenn alle Antworten einer Person " +
    "ersetzt werden, und epsilon = {epsilons}; wird auch die Schutzstufe ersetzt, {both}.",
  checkedLevels:
    "Die Münze, die entscheidet, ob Ihre Antworten ein zweites Mal zählen, wirft Ihr Gerät, mit " +
    "der Wahrscheinlichkeit, die Ihre Schutzstufe erlaubt. Niemand sonst erfährt, wie sie fiel.",
  checkedServerTable:
    "Das Zufallsrauschen, das beide Organisationen zu den Ergebnissen aller Fragen hinzufügen " +
    "wollen, ergibt diesen Schutz. Ob sie es wirklich hinzufügen, lässt sich von hier aus nicht " +
    "prüfen.",
  checkedProof:
    "Ihre Antworten werden mit einem Beweis gesendet, dass sie ein gültiger Fragebogen sind. Die " +
    "beiden Organisationen prüfen ihn gemeinsam, und keine sieht Ihre Antworten.",
  uncoveredBoth: "Würden beide Organisationen zusammenarbeiten, könnten sie Ihre Antworten lesen.",
  uncoveredPage:
    "Diese Seite kommt von {s1}. Würde dort ein anderes Programm verschickt, könnte es Ihre " +
    "Antworten lesen, und eine Prüfsumme, die dieselbe Stelle anzeigt, beweist nichts. Um " +
    "sicherzugehen, verwenden Sie das installierte Programm (faircount answer) oder eine Seite " +
    "von anderer Stelle, wenn Ihre Einladung eine nennt.",
  uncoveredServers:
    "Ein unehrlicher Server könnte das Ergebnis unbemerkt verfälschen oder Personen auslassen. " +
    "Teilnehmende können das nicht: Was kein gültiger Fragebogen ist, wird abgewiesen. Sie können " +
    "aber eine Frage beantworten, die sie nicht betrifft.",
  uncoveredDevice: "Wer Ihren Bildschirm sieht, sieht auch Ihre Antworten.",
  confirmTitle: "Diese Antworten senden?",
  confirmAnswer: "Ihre Antworten, die auf diesem Gerät bleiben:",
  confirmProven:
    "Dazu kam ein Beweis, dass Ihre Antworten ein gültiger Fragebogen sind, und alles wurde in " +
    "zwei Teile zerlegt. Keiner der beiden Teile verrät allein eine Ihrer Antworten.",
  confirmOnce:
    "Sie können nur einmal antworten. Bis zum Ende der Umfrage können Sie Ihre Antworten auf " +
    "diesem Gerät zurückziehen, und niemand auf einem anderen.",
  waitingText:
    "Der Server ist gerade nicht erreichbar. Diese Seite versucht es weiter. Sie können sie auch " +
    "schließen und später wiederkommen; Ihre Antworten bleiben gespeichert.",
  sentTitle: "Danke! Ihre Antworten sind angekommen",
  sentText:
    "Der Server hat bestätigt, dass er Ihre Antworten gespeichert hat, und Ihr Gerät hat die " +
    "Bestätigung geprüft.",
  tooLateText: "Zum Zurückziehen war es zu spät: Ihre Antworten werden schon gezählt.",
  refusedTitle: "Der Server hat Ihre Antworten nicht angenommen",
  noticeOtherDevice:
    "Ein anderes Gerät hat versucht, Ihre Einladung zu verwenden, und wurde abgewiesen. Ihre " +
    "Antworten sind unverändert. Wenn Sie das nicht waren, sagen Sie es bitte der Kontaktstelle " +
    "der Umfrage: Wer die Einladungen gemacht hat, hat eine Kopie von Ihrer.",
  withdrawingTitle: "Ihre Antworten werden zurückgezogen …",
  withdrawnTitle: "Ihre Antworten sind zurückgezogen",
  withdrawnText:
    "Der Server hat bestätigt, dass Ihre Antworten nicht gezählt werden. Das lässt sich nicht " +
    "rückgängig machen.",
  countedTitle: "Ihre Antworten wurden gezählt",
  countedText:
    "Das Ergebnis ist veröffentlicht, und Ihr Gerät hat den Beweis geprüft, dass Ihre Antworten " +
    "darin enthalten sind.",
  uncountedTitle: "Ihre Antworten wurden nicht gezählt",
  uncountedText:
    "Das Ergebnis wurde ohne Ihre Antworten veröffentlicht. Wenn Sie eine Quittung haben, beweist " +
    "sie, dass der Server sie angenommen hatte.",
  withdrawalLost:
    "Sie hatten Ihre Antworten rechtzeitig zurückgezogen, und der Server hatte das bestätigt. " +
    "Trotzdem wurden sie gezählt, weil der Server den Widerruf verloren hat. Die Quittung beweist " +
    "das: Bitte sagen Sie es der Kontaktstelle der Umfrage.",
  receiptText:
    "Die Quittung beweist, was der Server bestätigt hat. Ihre Antworten stehen nicht darin.",
  checkButton: "Wurden meine Antworten gezählt?",
  withdrawButton: "Meine Antworten zurückziehen",
  withdrawSure: "Die Antworten endgültig zurückziehen? Sie können nicht noch einmal antworten.",
  withdrawYes: "Ja, zurückziehen",
  withdrawNo: "Nein, behalten",
  forgetText:
    "Wenn Sie die Umfrage entfernen, können Sie Ihre Antworten hier nicht mehr zurückziehen und " +
    "nicht mehr prüfen, ob sie gezählt wurden.",
  kept:
    "Dieses Gerät bewahrt auf, was gesendet wurde, um es noch einmal senden zu können. Ihre " +
    "Antworten selbst bewahrt es nicht auf.",
  keptWithdrawal:
    "Dieses Gerät bewahrt auf, dass Sie Ihre Antworten zurückgezogen haben, um es noch einmal zu " +
    "senden, falls der Server es verliert. Ihre Antworten selbst bewahrt es nicht auf.",
  resultTitle: "Ergebnisse",
  resultText:
    "Das sind Schätzungen, denn Zufallsrauschen schützt alle. In 95 von 100 solchen Umfragen " +
    "liegt die wahre Zahl für die gezählten Personen im Intervall. Ein geschätzter Anteil kann " +
    "unter 0 liegen.",
  resultBase:
    "Die Tabellen oben zählen alle einmal. Sie gelten, was immer die Leute gewählt haben.",
  resultProven:
    "Gezählte Personen: {included}, jede nachweislich mit einem gültigen Fragebogen. Abgewiesen: " +
    "{refused}.",
};

export const SEVERAL = { en, de };
