// What the page says where a survey offers privacy levels; part of the sentences in strings.js.

export const en = {
  level_very_strong: "very strong",
  level_strong: "strong",
  level_normal: "normal",

  // choice
  levelTitle: "How well should your answer be hidden?",
  levelHint:
    "Nobody learns what you choose here. It stays on this device, and what is sent looks the same " +
    "whatever you choose.",
  levelStrongest:
    "Even after seeing the result, nobody can be more than {sure} % sure which of two answers is " +
    "yours. 50 % would be a guess.",
  levelBetween:
    "At most {sure} % sure. Your device tosses a coin: your answer may be counted a second " +
    "time, which makes the result more exact.",
  levelWeakest:
    "At most {sure} % sure. Your answer is counted a second time, which makes the result " +
    "more exact.",
  levelBoth:
    "Somebody who guesses both your answer and your choice here can be at most {both} % sure.",
  levelWeak: "That is hardly any protection.",

  // promise
  promiseLevels:
    "Imagine somebody who thinks that two answers are equally likely to be yours. How sure this " +
    "person can be after seeing the result depends on the level that you choose:",
  promiseLevel:
    "{name}: at most {sure} % sure which one you chose, and at most {both} % sure of your answer " +
    "and your level together.",
  promiseLevelOthers: "What others choose changes nothing about it.",
  promiseLevelNumbers:
    "For experts: differential privacy with delta = {delta}, replacing one person's answer, and " +
    "epsilon = {epsilons}; if the level is replaced, too, {both}.",
  promiseLevelSingle:
    "About a single answer of yours, this person can be at most {sure} % sure, at any level.",
  checkedLevels:
    "The coin that decides whether your answer is counted a second time is tossed on your device, " +
    "with the chance that your level allows. Nobody else learns how it fell.",

  // confirm and status
  confirmLevel: "Your level, which stays on this device, too:",
  keptNoLevel: "It does not keep your level, either.",

  // result
  resultTwice: "About {twice} of {included} people were counted a second time (±{error}).",
  resultBase: "The table above counts everybody once. It holds whatever people chose.",
  resultAgain: "Those who were counted a second time",
  resultAlike: "Estimated shares, if people who chose weaker protection answer like everybody",
  resultAlikeText:
    "These estimates also use those who were counted a second time. They are more exact if these " +
    "people answer like everybody, and wrong if they do not. Nobody can know that for sure.",
  resultRealizedLevels:
    "Privacy achieved: epsilon = {strongest} at the strongest level and {epsilon} at the weakest, " +
    "delta = {delta}.",
};

export const de = {
  level_very_strong: "sehr stark",
  level_strong: "stark",
  level_normal: "normal",

  levelTitle: "Wie gut soll Ihre Antwort verborgen sein?",
  levelHint:
    "Niemand erfährt, was Sie hier wählen. Es bleibt auf diesem Gerät, und was gesendet wird, " +
    "sieht bei jeder Wahl gleich aus.",
  levelStrongest:
    "Selbst wer das Ergebnis kennt, kann nicht mehr als zu {sure} % sicher sein, welche von zwei " +
    "Antworten Ihre ist. 50 % wären bloßes Raten.",
  levelBetween:
    "Höchstens zu {sure} % sicher. Ihr Gerät wirft eine Münze: Ihre Antwort zählt vielleicht " +
    "ein zweites Mal, und das Ergebnis wird genauer.",
  levelWeakest:
    "Höchstens zu {sure} % sicher. Ihre Antwort zählt ein zweites Mal, und das Ergebnis wird " +
    "genauer.",
  levelBoth:
    "Wer Ihre Antwort und Ihre Wahl hier zugleich erraten will, kann höchstens zu {both} % sicher " +
    "sein.",
  levelWeak: "Das ist kaum ein Schutz.",

  promiseLevels:
    "Angenommen, jemand hält zwei Antworten bei Ihnen für gleich wahrscheinlich. Wie sicher sich " +
    "diese Person mit dem Ergebnis sein kann, hängt von der Schutzstufe ab, die Sie wählen:",
  promiseLevel:
    "{name}: höchstens zu {sure} % sicher, welche es war, und höchstens zu {both} % sicher, was " +
    "Antwort und Schutzstufe zugleich angeht.",
  promiseLevelOthers: "Was andere wählen, ändert daran nichts.",
  promiseLevelNumbers:
    "Für Fachleute: Differential Privacy mit delta = {delta}, wenn die Antwort einer Person " +
    "ersetzt wird, und epsilon = {epsilons}; wird auch die Schutzstufe ersetzt, {both}.",
  promiseLevelSingle:
    "Über eine einzelne Ihrer Antworten kann diese Person auf jeder Stufe höchstens zu {sure} % " +
    "sicher sein.",
  checkedLevels:
    "Die Münze, die entscheidet, ob Ihre Antwort ein zweites Mal zählt, wirft Ihr Gerät, mit der " +
    "Wahrscheinlichkeit, die Ihre Schutzstufe erlaubt. Niemand sonst erfährt, wie sie fiel.",

  confirmLevel: "Ihre Schutzstufe, die ebenfalls auf diesem Gerät bleibt:",
  keptNoLevel: "Auch Ihre Schutzstufe bewahrt es nicht auf.",

  resultTwice: "Etwa {twice} von {included} Personen wurden ein zweites Mal gezählt (±{error}).",
  resultBase: "Die Tabelle oben zählt alle einmal. Sie gilt, was immer die Leute gewählt haben.",
  resultAgain: "Die zweimal Gezählten",
  resultAlike: "Geschätzte Anteile, falls Personen mit schwächerem Schutz wie alle antworten",
  resultAlikeText:
    "Diese Schätzungen nutzen auch die zweite Zählung. Sie sind genauer, wenn die zweimal " +
    "Gezählten wie alle antworten, und falsch, wenn nicht. Sicher weiß das niemand.",
  resultRealizedLevels:
    "Erreichter Schutz: epsilon = {strongest} auf der stärksten und {epsilon} auf der schwächsten " +
    "Schutzstufe, delta = {delta}.",
};
